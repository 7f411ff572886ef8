package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/cmd/starling/terminal"
)

// Fetch copies the files of a job that are of some kinds.
func (a *Client) Fetch(ctx context.Context, id, to string, kinds []string) ([]api.File, error) {
	files, err := a.Files(ctx, id)
	if err != nil {
		return nil, Explain(err)
	}
	files = slices.DeleteFunc(files, func(f api.File) bool { return !slices.Contains(kinds, f.Kind) })
	if len(files) == 0 {
		return nil, terminal.WithExit(&terminal.Problem{Code: "NO_FILES",
			What: fmt.Sprintf("the job %s has no files of the kind %s", id, strings.Join(kinds, " or ")),
			Fix:  "wait until it is over; starling job get says where it stands"}, terminal.ExitNotFound)
	}
	for _, f := range files {
		if err := a.SaveFile(ctx, id, f, filepath.Join(to, filepath.FromSlash(f.Name))); err != nil {
			if errors.Is(err, os.ErrExist) {
				err = terminal.WithExit(&terminal.Problem{Code: "FILE_EXISTS", What: "cannot write " + f.Name, Why: err.Error(),
					Fix: "give another --to; nothing is overwritten"}, terminal.ExitConflict)
			}
			return nil, Explain(err)
		}
	}
	return files, nil
}

// PrintFetched says which files of a job were copied to a folder.
func PrintFetched(c *terminal.Console, to string, files []api.File) error {
	if c.Form.Machine() {
		return c.Form.Print(os.Stdout, terminal.List(map[string]any{"to": to, "files": files}, files,
			func(f api.File) string { return filepath.Join(to, filepath.FromSlash(f.Name)) }))
	}
	var bytes int64
	for _, f := range files {
		bytes += f.Bytes
	}
	_, err := fmt.Printf("%s: %d files, %s\n", to, len(files), terminal.Bytes(uint64(bytes)))
	return err
}
