// Package ways is which layers of a model the microbatches of a step pass, and the gradients of their losses. SkipPipe
// trains stages with a part of the layers for each (Blagoev et al. 2025, arXiv 2502.19913). It makes no program.
package ways

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
)

// ErrWay is wrapped by every reason why layers cannot be left out.
var ErrWay = errors.New("ways: not layers that microbatches can leave out")

// Way is that of one microbatch. The zero Way passes all layers.
type Way struct {
	Left   map[int]bool // layers that it leaves out
	passes []bool       // by trained tensor: it is of another layer, or of none; nil: all are
}

// Of are the ways of the microbatches of a batch, each of a number of rows, which leave out layers: left has those of
// each. Every tensor that is trained is passed by one microbatch at least, and each microbatch passes a layer. The
// error wraps ErrWay.
func Of(c architecture.Config, trained []architecture.Named, left [][]int, batch, rows int) (all []Way, err error) {
	if rows < 1 || rows*len(left) != batch {
		return nil, fmt.Errorf("%w: %d microbatches of %d rows for %d", ErrWay, len(left), rows, batch)
	}
	passed := make([]bool, len(trained))
	for k, layers := range left {
		w := Way{Left: map[int]bool{}, passes: make([]bool, len(trained))}
		for _, layer := range layers {
			if layer < 0 || layer >= c.Layers {
				return nil, fmt.Errorf("%w: microbatch %d leaves out layer %d of %d", ErrWay, k, layer, c.Layers)
			}
			w.Left[layer] = true
		}
		if len(w.Left) == c.Layers {
			return nil, fmt.Errorf("%w: microbatch %d leaves out all %d layers", ErrWay, k, c.Layers)
		}
		for i, n := range trained {
			layer, ok := c.LayerOf(strings.TrimPrefix(n.Name, architecture.AdapterPrefix))
			w.passes[i] = !ok || !w.Left[layer]
			passed[i] = passed[i] || w.passes[i]
		}
		all = append(all, w)
	}
	for i, n := range trained {
		if !passed[i] {
			return nil, fmt.Errorf("%w: every microbatch leaves out %q", ErrWay, n.Name)
		}
	}
	return all, nil
}

// At is the way of a microbatch; of no ways, the one that passes all layers.
func At(all []Way, k int) Way {
	if all == nil {
		return Way{}
	}
	return all[k]
}

// Gradients are those of a loss by all trained tensors. Those of tensors that the microbatch does not pass are nil.
func (w Way) Gradients(loss *graph.Node, trained []*graph.Node) []*graph.Node {
	if w.passes == nil {
		return graph.Gradient(loss, trained...)
	}
	var passed []*graph.Node
	for i, x := range trained {
		if w.passes[i] {
			passed = append(passed, x)
		}
	}
	made, all := graph.Gradient(loss, passed...), make([]*graph.Node, len(trained))
	for i := range trained {
		if w.passes[i] {
			all[i], made = made[0], made[1:]
		}
	}
	return all
}

// Add adds values to sums, if there are some, and the sums that it makes to those made before. Values may be nil.
func Add(sums, values, made []*graph.Node) (all, madeNow []*graph.Node) {
	if sums == nil {
		return values, made
	}
	for i, x := range values {
		switch {
		case sums[i] == nil:
			sums[i] = x
		case x != nil:
			sums[i] = graph.Add(sums[i], x)
			made = append(made, sums[i])
		}
	}
	return sums, made
}
