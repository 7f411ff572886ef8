// Package compat holds what Starling computes against what the libraries compute whose files it reads: the logits of
// one small folder of every published configuration against plain PyTorch's, and the ids that tokenizers give to a text
// against those of Hugging Face's own.
//
// The folders have the config.json of a published model, key by key, with smaller sizes, and random weights;
// families.py makes them and the logits.
package compat

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"path"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

//go:embed folders
var folders embed.FS

// Tolerance is the largest difference of a logit from PyTorch's that passes.
const Tolerance = 2e-4

// Folder is the outcome of one folder.
type Folder struct {
	Name         string   `json:"name"`
	Architecture string   `json:"architecture,omitempty"`
	Difference   float64  `json:"largest_difference"` // of a logit from PyTorch's
	Exported     bool     `json:"exports_equal"`      // written as a folder, it reads back as it was
	Greedy       int      `json:"greedy_tokens"`      // of the greedy text that are PyTorch's, from the beginning on
	Ignored      []string `json:"ignored,omitempty"`  // keys of config.json
	Error        string   `json:"error,omitempty"`    // why it does not load or run
}

// Folders reads and runs every folder, with programs on so many threads, in ascending order of names.
func Folders(threads int) ([]Folder, error) {
	list, err := fs.ReadDir(folders, "folders")
	if err != nil {
		return nil, fmt.Errorf("compat: %w", err)
	}
	var out []Folder
	for _, entry := range list {
		f := Folder{Name: entry.Name()}
		if err := f.measure(threads); err != nil {
			f.Error = err.Error()
		}
		out = append(out, f)
	}
	return out, nil
}

// expected is what PyTorch gives for a folder.
type expected struct {
	Tokens []int32     `json:"tokens"`
	Greedy []int32     `json:"greedy"` // the most likely ones after the first of them
	Logits [][]float32 `json:"logits"` // of each token
}

func (f *Folder) measure(threads int) error {
	sub, err := fs.Sub(folders, path.Join("folders", f.Name))
	if err != nil {
		return err
	}
	m, err := folder.Read(sub)
	if err != nil {
		return err
	}
	f.Architecture, f.Ignored = m.Config.Architecture(), m.Ignored
	raw, err := fs.ReadFile(sub, "expected.json")
	if err != nil {
		return err
	}
	var want expected
	if err := json.Unmarshal(raw, &want); err != nil {
		return err
	}
	got, err := logits(m, want.Tokens, threads)
	if err != nil {
		return err
	}
	f.Difference = largest(got, want.Logits)
	if f.Greedy, err = follow(m, want, threads); err != nil {
		return err
	}
	f.Exported, err = readsBack(m)
	return err
}

// logits runs the model on one sequence.
func logits(m *folder.Model, tokens []int32, threads int) ([]float32, error) {
	p, err := model.Logits(m.Config, 1, len(tokens))
	if err != nil {
		return nil, err
	}
	exec, err := cpu.Compile(p, threads)
	if err != nil {
		return nil, err
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(tokens, 1, len(tokens))}
	for name, t := range m.Tensors {
		in[train.Param+name] = t
	}
	out, err := exec.Run(in)
	if err != nil {
		return nil, err
	}
	return out["logits"].F32(), nil
}

// largest is the largest difference between numbers, infinite if there are not as many.
func largest(got []float32, want [][]float32) float64 {
	most, i := 0.0, 0
	for _, row := range want {
		for _, x := range row {
			if i >= len(got) {
				return math.Inf(1)
			}
			if d := math.Abs(float64(got[i]) - float64(x)); !(d <= most) {
				most = d
			}
			i++
		}
	}
	if i != len(got) {
		return math.Inf(1)
	}
	return most
}
