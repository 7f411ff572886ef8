// Package section reads sequences with a part of a model: the layers of one stage, or what stands before and after all
// layers, which the front of the stages has. A section has the weights of its part alone, and remembers keys and values
// for its layers alone. It computes operators of model.Extend, so that all sections of a model have the bits of a model
// that is not cut.
//
// It sends nothing and draws no tokens: package generate has sections in a row as one model.
package section

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages/forward"
	"github.com/starling-network/starling/compute/train/parts"
)

// Errors of sections.
var (
	ErrLayout = errors.New("section: the model has no such stages")
	ErrPass   = errors.New("section: no pass of this model")
)

// Front is the number of the part before and after all layers. Stages have the numbers from 1 on.
const Front = 0

// Layout says which layers a stage holds.
type Layout struct {
	Config architecture.Config
	Stages int
	cuts   *cuts
}

// cuts are the programs of all parts, which the sections of one process share.
type cuts struct {
	mu   sync.Mutex
	size size
	list []*program.Program
}

// Divide gives the layers of a model to stages, as evenly as it can be done.
func Divide(c architecture.Config, stages int) (Layout, error) {
	if _, adapted := c.LoRA(); stages < 1 || stages > c.Layers || adapted {
		return Layout{}, fmt.Errorf("%w: %d stages of %d layers, with adapters: %t; each stage has a layer at least, and "+
			"none has adapters", ErrLayout, stages, c.Layers, adapted)
	}
	return Layout{Config: c, Stages: stages, cuts: &cuts{}}, nil
}

// Layers are those of a stage: from the first to the one before the second number.
func (l Layout) Layers(stage int) (from, to int) {
	return (stage - 1) * l.Config.Layers / l.Stages, stage * l.Config.Layers / l.Stages
}

// Begins are the first layers of all stages.
func (l Layout) Begins() (layers []int) {
	for stage := 1; stage <= l.Stages; stage++ {
		from, _ := l.Layers(stage)
		layers = append(layers, from)
	}
	return layers
}

// stageOf is the stage of a layer.
func (l Layout) stageOf(layer int) int {
	for stage := 1; stage < l.Stages; stage++ {
		if _, to := l.Layers(stage); layer < to {
			return stage
		}
	}
	return l.Stages
}

// Tensors lists the tensors of a part, in the order of the model.
func (l Layout) Tensors(part int) []architecture.Named {
	return slices.DeleteFunc(l.Config.Tensors(), func(n architecture.Named) bool { return l.Of(n.Name) != part })
}

// Of is the part that a tensor belongs to.
func (l Layout) Of(tensor string) int {
	if layer, ok := l.Config.LayerOf(tensor); ok {
		return l.stageOf(layer)
	}
	return Front
}

// input is the part of an input of model.Extend, for forward.Cut: what stands before the layers is part 0 there, and
// what stands after them the last part.
func (l Layout) input(name string) int {
	if n, ok := strings.CutPrefix(name, parts.Param); ok {
		if of := l.Of(n); of != Front {
			return of
		}
		return forward.Ends
	}
	kind, rest, _ := strings.Cut(name, "/")
	number, _, found := strings.Cut(rest, "/")
	if layer, err := strconv.Atoi(number); err == nil && found && (kind == "keys" || kind == "values") {
		return l.stageOf(layer)
	}
	return forward.Anywhere
}

// programs are those of all parts for passes of a size. Those of the last size are kept.
func (l Layout) programs(z size) ([]*program.Program, error) {
	l.cuts.mu.Lock()
	defer l.cuts.mu.Unlock()
	if l.cuts.list != nil && l.cuts.size == z {
		return l.cuts.list, nil
	}
	whole, err := model.Extend(l.Config, z.sequences, z.tokens, z.past, false)
	if err != nil {
		return nil, err
	}
	list, err := forward.Cut(whole, l.Stages+2, l.input)
	if err == nil {
		l.cuts.size, l.cuts.list = z, list
	}
	return list, err
}

// Bytes is the number of bytes of keys and values that a stage remembers of a sequence of at most limit tokens.
func (l Layout) Bytes(stage, limit int) int64 {
	from, to := l.Layers(stage)
	_, s := model.Memory(l.Config, l.Rounded(min(limit, l.Config.Context())))
	return 2 * int64(to-from) * int64(s.Bytes())
}

// Sizes of passes.
const (
	Piece     = 64 // tokens of one sequence that are read at once
	minMemory = 64 // tokens; memory doubles from here on
)

// Rounded is the size of memory for n tokens: sizes double, so that there are few programs.
func (l Layout) Rounded(n int) int { return Rounded(l.Config, n) }

// Rounded is Layout.Rounded of a model.
func Rounded(c architecture.Config, n int) int {
	room := minMemory
	for room < n {
		room *= 2
	}
	return min(room, c.Context())
}
