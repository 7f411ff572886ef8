package model

import (
	"strings"

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

// adapt adds to y, the outputs lo to hi of the layer with the weight name on x [n, in], what its adapter adds, if any.
func (w weights) adapt(y, x *graph.Node, name string, lo, hi int) *graph.Node {
	prefix := architecture.AdapterPrefix + strings.TrimSuffix(w.prefix+name, ".weight")
	if len(w.each) > 0 {
		return w.adaptEach(y, x, prefix, lo, hi)
	}
	a, ok := w.nodes[prefix+architecture.DownSuffix]
	if !ok {
		return y
	}
	b := graph.Slice(w.nodes[prefix+architecture.UpSuffix], graph.AxisRange(lo, hi))
	return graph.Add(y, linear(graph.MulScalar(linear(w.dice.Drop(x, w.dropout), a), w.scale), b))
}

// adaptEach is adapt with the adapters of the sequence that a row of x belongs to: there are as many rows of each.
func (w weights) adaptEach(y, x *graph.Node, prefix string, lo, hi int) *graph.Node {
	if w.each[0].nodes[prefix+architecture.DownSuffix] == nil {
		return y
	}
	rows, added := dims(x)[0]/len(w.each), make([]*graph.Node, len(w.each))
	for i, o := range w.each {
		inner := linear(graph.Slice(x, graph.AxisRange(i*rows, (i+1)*rows)), o.nodes[prefix+architecture.DownSuffix])
		inner = graph.Mul(inner, graph.BroadcastToDims(o.scale, dims(inner)...))
		added[i] = linear(inner, graph.Slice(o.nodes[prefix+architecture.UpSuffix], graph.AxisRange(lo, hi)))
	}
	if len(added) == 1 {
		return graph.Add(y, added[0])
	}
	return graph.Add(y, graph.Concatenate(added, 0))
}

// linear is the layer with the weight name [out, in], and its adapter, on x [n, in].
func (w weights) linear(name string, x *graph.Node) *graph.Node {
	x, weight := w.rounded(x), w.rounded(w.at(name))
	return w.rounded(w.adapt(w.times(x, weight, 1), x, name, 0, dims(weight)[0]))
}

// conv is x [n, in] times weight [in, out] plus bias [out].
func (w weights) conv(x, weight, bias *graph.Node) *graph.Node {
	y := w.times(x, weight, 0)
	return graph.Add(y, down(bias, y))
}

// conv1D, as Hugging Face calls the dense layer of GPT-2, is the layer with the weight name [in, out], a bias and an
// adapter, on x [n, in].
func (w weights) conv1D(name string, x *graph.Node) *graph.Node {
	x, weight := w.rounded(x), w.rounded(w.at(name+".weight"))
	return w.rounded(w.adapt(w.conv(x, weight, w.at(name+".bias")), x, name, 0, dims(weight)[1]))
}
