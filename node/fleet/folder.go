package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/node/folder"
)

// FileWorkers is the list of the workers of a host, in the folder that has a folder for each.
const FileWorkers = "workers.json"

// hosted is the content of FileWorkers.
type hosted struct {
	Workers []string `json:"workers"` // names of the folders
}

// KeepNames writes the names of the workers of a host.
func KeepNames(home string, workers []Worker) error {
	var names []string
	for _, w := range workers {
		names = append(names, w.Name)
	}
	return folder.WriteJSON(filepath.Join(home, FileWorkers), hosted{names})
}

// Homes are the folders of the workers of a host, in the order of its file. Of a folder that is none of a host it is
// that folder alone.
func Homes(home string) (homes []string, err error) {
	var h hosted
	err = folder.ReadJSON(filepath.Join(home, FileWorkers), &h)
	if errors.Is(err, fs.ErrNotExist) {
		return []string{home}, nil
	}
	for _, name := range h.Workers {
		homes = append(homes, filepath.Join(home, name))
	}
	return homes, err
}

// Invitations are the files of a folder that hold invitations, as starling fleet add --out writes them: in the order of
// their numbers.
func Invitations(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	number := func(name string) (n int) {
		_, err := fmt.Sscanf(name, "machine-%d", &n)
		if err != nil || name != fmt.Sprintf("machine-%d", n) {
			return 0
		}
		return n
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && number(e.Name()) > 0 {
			names = append(names, e.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(number(a), number(b)) })
	for _, name := range names {
		files = append(files, filepath.Join(dir, name))
	}
	return files, nil
}
