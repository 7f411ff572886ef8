// Package left is the layers that microbatches left out while a model was trained: a file in the folder of the model,
// by which it is known which stages texts may be continued without. It computes nothing.
package left

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/stages/paths"
)

// File is the name of the file.
const File = "left_layers.json"

// maxSets bounds the sets of a file, and with them its length.
const maxSets = 1 << 10

// ErrFile is wrapped by the reasons why bytes are no such file.
var ErrFile = errors.New("not a list of the layers that were left out in training")

// Layers are sets of layers, each ascending: those that one microbatch left out. The first layer is 0.
type Layers [][]int

// Of are those of a step that is cut before some groups of layers, and of whose stages each of some microbatches leaves
// out a share. The error wraps paths.ErrShare.
func Of(micro int, share float64, before []int) (all Layers, err error) {
	ways, err := paths.Of(len(before)+1, micro, share)
	if err != nil {
		return nil, err
	}
	for _, set := range ways.Layers(before) {
		if known := func(x []int) bool { return slices.Equal(x, set) }; len(set) > 0 && !slices.ContainsFunc(all, known) {
			all = append(all, set)
		}
	}
	return all, nil
}

// Stages reports whether texts may be continued without some stages of a model: a microbatch left out all their layers,
// and the last stage, which ends in the norm before the output layer, is not among them.
func (l Layers) Stages(of section.Layout, stages ...int) bool {
	return slices.ContainsFunc(l, func(set []int) bool {
		for _, s := range stages {
			if s == of.Stages {
				return false
			}
			from, to := of.Layers(s)
			for n := from; n < to; n++ {
				if !slices.Contains(set, n) {
					return false
				}
			}
		}
		return true
	})
}

// Each lists the stages of a model, one of which texts may be continued without.
func (l Layers) Each(of section.Layout) (stages []int) {
	for s := 1; s <= of.Stages; s++ {
		if l.Stages(of, s) {
			stages = append(stages, s)
		}
	}
	return stages
}

// Check compares the sets with a model of a number of layers. The error wraps ErrFile.
func (l Layers) Check(layers int) error {
	if len(l) > maxSets {
		return fmt.Errorf("%w: %d sets, at most %d", ErrFile, len(l), maxSets)
	}
	for _, set := range l {
		last := -1
		for _, n := range set {
			if n <= last || n >= layers {
				return fmt.Errorf("%w: %.100q of %d layers; a set is ascending, from 0 on", ErrFile, fmt.Sprint(set), layers)
			}
			last = n
		}
		if len(set) == 0 || len(set) == layers {
			return fmt.Errorf("%w: a set of %d of %d layers", ErrFile, len(set), layers)
		}
	}
	return nil
}

// JSON is the text of the file.
func (l Layers) JSON() []byte {
	text, _ := json.Marshal(l) // it never fails
	return append(text, '\n')
}

// Parse reads the text of a file about a model of a number of layers, whose author is not trusted. The error wraps
// ErrFile.
func Parse(text []byte, layers int) (l Layers, err error) {
	if err := json.Unmarshal(text, &l); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return l, l.Check(layers)
}

// Read reads the file of a model of a number of layers; nil: there is none. The error wraps ErrFile.
func Read(dir string, layers int) (Layers, error) {
	f, err := os.Open(filepath.Join(dir, File))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFile, err)
	}
	return Parse(text, layers)
}
