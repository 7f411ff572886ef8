package model

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/record"
)

// weights are the tensors of a model as nodes of a graph, seen under a prefix of their names.
type weights struct {
	nodes           map[string]*graph.Node
	prefix          string
	scale           float64      // of the outputs of adapters
	each            []own        // the adapters of each sequence, if they have their own
	dice            *record.Dice // of dropout; nil: there is none
	dropout, hidden float64      // the dropped share of the additions to the residual stream
	half            bool         // layers read and give bfloat16
	form            exact.Form   // of the products of layers; its zero value: they are of float32
}

// float32Only has layers read, multiply and give float32.
func (w weights) float32Only() weights {
	w.half, w.form = false, exact.Form{}
	return w
}

// times is x [n, in] times a weight over an axis of it.
func (w weights) times(x, weight *graph.Node, axis int) *graph.Node {
	if w.form == (exact.Form{}) {
		return graph.DotGeneral(x, []int{1}, nil, weight, []int{axis}, nil)
	}
	return record.Exact(x, weight, axis, w.form)
}

// dropped is what is added to the residual stream, less what is dropped of it.
func (w weights) dropped(x *graph.Node) *graph.Node { return w.dice.Drop(x, w.hidden) }

// rounded is x as layers read it, or give it.
func (w weights) rounded(x *graph.Node) *graph.Node {
	if w.half {
		return record.Half(x)
	}
	return x
}

// own is the adapters of one sequence.
type own struct {
	nodes map[string]*graph.Node
	scale *graph.Node // of their outputs: a scalar
}

// at returns the tensor with the given name after the prefix.
func (w weights) at(name string) *graph.Node {
	node, ok := w.nodes[w.prefix+name]
	if !ok {
		panic("model: no tensor " + w.prefix + name)
	}
	return node
}

// under returns the same tensors under a longer prefix.
func (w weights) under(prefix string) weights {
	w.prefix += prefix
	return w
}

// taskOf is a task without a loss, which trains the adapters of a model, or all of it if there are none.
func taskOf(c architecture.Config, batch ...architecture.Named) Task {
	l, adapted := c.LoRA()
	if !adapted {
		return Task{Batch: batch, Trained: c.Tensors()}
	}
	return Task{Batch: batch, Frozen: c.Frozen(), Trained: c.Adapters(), scale: c.Scale(), dropout: l.Dropout}
}
