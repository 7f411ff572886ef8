package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/web/failure"
)

// Files of a run that may be served, by kind. A run has more files, such as the keys of its network, which are not
// listed and never served.
var (
	modelFiles = []string{"model.safetensors", "model.gguf", "config.json", "generation_config.json", "tokenizer.json",
		"tokenizer_config.json",
		"chat_template.jinja", "special_tokens_map.json", "left_layers.json",
		"adapter/adapter_model.safetensors", "adapter/adapter_config.json", "README.md"}
	recordFiles = []string{fileJob, fileSummary, fileSimulation, fileMetrics, fileLineage, fileReceipts, fileDisputes,
		fileSamples, fileLinks, fileLog, "report.html", "trainer_state.json"}
)

const (
	dirBlobs = "blobs"
	maxBlobs = 10_000 // that are listed
)

// blobName is the path of a blob by its CID; the folder of a store has other files, too.
var blobName = regexp.MustCompile(`^` + dirBlobs + `/[a-z2-7]{1,100}$`)

// Files implements source.Runs.
func (l *RunStore) Files(_ context.Context, id string) ([]api.File, error) {
	root, err := l.rootOf(id)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	files := []api.File{}
	add := func(kind string, names ...string) {
		for _, name := range names {
			if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
				files = append(files, file(name, kind, info))
			}
		}
	}
	if add("model", modelFiles...); len(files) > 0 && files[0].Name != modelFiles[0] {
		files = files[:0] // not a model by itself
	}
	add("record", recordFiles...)
	entries, _ := fs.ReadDir(root.FS(), dirBlobs) // there may be none
	for _, e := range entries[:min(len(entries), maxBlobs)] {
		if name := dirBlobs + "/" + e.Name(); blobName.MatchString(name) {
			add("blob", name)
		}
	}
	return files, nil
}

func file(name, kind string, info fs.FileInfo) api.File {
	return api.File{Name: name, Kind: kind, Bytes: info.Size(), Modified: info.ModTime().UTC()}
}

// Open implements source.Runs. It opens no link.
func (l *RunStore) Open(_ context.Context, id, name string) (io.ReadSeekCloser, api.File, error) {
	kind := ""
	switch {
	case slices.Contains(modelFiles, name):
		kind = "model"
	case slices.Contains(recordFiles, name):
		kind = "record"
	case blobName.MatchString(name):
		kind = "blob"
	}
	gone := fmt.Errorf("%w: file of run %s", failure.ErrNotFound, id)
	if kind == "" {
		return nil, api.File{}, gone
	}
	root, err := l.rootOf(id)
	if err != nil {
		return nil, api.File{}, err
	}
	defer root.Close()
	named, err := root.Lstat(name)
	if err != nil || !named.Mode().IsRegular() { // what it opens does not make it wait
		return nil, api.File{}, gone
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, api.File{}, gone
	}
	info, err := f.Stat()
	if err != nil || !os.SameFile(named, info) {
		return nil, api.File{}, errors.Join(gone, f.Close())
	}
	return f, file(name, kind, info), nil
}

// RemoveModel removes the weights of a run from its folder, with their configuration, tokenizer and checkpoints, and
// leaves its records.
func RemoveModel(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range modelFiles { // the weights first: without them it is no model
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return root.RemoveAll(dirBlobs)
}

// rootOf opens the folder of a run.
func (l *RunStore) rootOf(id string) (*os.Root, error) {
	f, err := l.one(id)
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(f.path)
}
