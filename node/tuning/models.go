package tuning

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/starling-network/starling/node/runs"
	"github.com/starling-network/starling/web/failure"
	"github.com/starling-network/starling/web/openai"
)

// Models lists the models that the runs of the server left, the latest first: under the name of the tuned model, or
// that of the run.
func (t *Tuner) Models() []openai.Info {
	entries, _ := os.ReadDir(t.runs) // of a folder that went away there are none
	var list []openai.Info
	for _, e := range entries {
		weights, err := os.Stat(filepath.Join(t.runs, e.Name(), "model.safetensors"))
		if err != nil {
			continue
		}
		name := e.Name()
		if asked, err := t.Request(name); err == nil {
			name = asked.Tuned(name)
		}
		list = append(list, openai.Info{Name: name, Created: weights.ModTime()})
	}
	slices.SortStableFunc(list, func(a, b openai.Info) int { return b.Created.Compare(a.Created) })
	return list
}

// Remove removes the weights of a model that a run of the server tuned, or fails with failure.ErrNotFound.
func (t *Tuner) Remove(model string) error {
	run := model[strings.LastIndexByte(model, ':')+1:]
	asked, err := t.Request(run)
	if err != nil || asked.Tuned(run) != model {
		return failure.ErrNotFound
	}
	dir := filepath.Join(t.runs, run)
	if _, err := os.Stat(filepath.Join(dir, "model.safetensors")); err != nil {
		return failure.ErrNotFound // it is removed, or not there yet
	}
	return runs.RemoveModel(dir)
}

// Folder is the folder of a model, or an error that wraps openai.ErrModel.
func (t *Tuner) Folder(name string) (string, error) {
	dir, err := t.model(name)
	if err != nil {
		return "", fmt.Errorf("%w as %.80q", openai.ErrModel, name)
	}
	return dir, nil
}
