package model

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/compute/model/architecture"
)

// path is the way of one microbatch of a step through a model.
type path struct {
	left   map[int]bool    // layers that it leaves out
	trains map[string]bool // tensors of other layers, and of none
}

// Leaving is the task whose steps compute parts of the batch with some of the layers alone: left has, for each
// microbatch, the layers that it leaves out, as SkipPipe trains stages (Blagoev et al. 2025, arXiv 2502.19913). The
// gradient of a layer is of the loss of the microbatches that pass it. Eval computes all layers.
func (t Task) Leaving(c architecture.Config, left [][]int) (Task, error) {
	if rows := t.Batch[0].Shape.Dims[0]; t.micro < 1 || t.micro*len(left) != rows {
		return t, fmt.Errorf("%w: ways of %d microbatches for %d sequences in parts of %d", ErrStep, len(left), rows, t.micro)
	}
	trained := map[string]bool{}
	t.paths = nil
	for k, layers := range left {
		p := path{left: map[int]bool{}, trains: map[string]bool{}}
		for _, layer := range layers {
			if layer < 0 || layer >= c.Layers {
				return t, fmt.Errorf("%w: microbatch %d leaves out layer %d of %d", ErrStep, k, layer, c.Layers)
			}
			p.left[layer] = true
		}
		if len(p.left) == c.Layers {
			return t, fmt.Errorf("%w: microbatch %d leaves out all %d layers", ErrStep, k, c.Layers)
		}
		for _, n := range t.Trained {
			if layer, ok := c.LayerOf(strings.TrimPrefix(n.Name, architecture.AdapterPrefix)); !ok || !p.left[layer] {
				p.trains[n.Name], trained[n.Name] = true, true
			}
		}
		t.paths = append(t.paths, p)
	}
	for _, n := range t.Trained {
		if !trained[n.Name] {
			return t, fmt.Errorf("%w: every microbatch leaves out %q", ErrStep, n.Name)
		}
	}
	return t, nil
}
