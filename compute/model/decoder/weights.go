package decoder

import (
	"strings"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/record"
)

// Weights are the tensors of a model as nodes of a graph, seen under a prefix of their names.
type Weights struct {
	Nodes   map[string]*graph.Node
	Scale   float64      // of the outputs of adapters
	Each    []Own        // the adapters of each sequence, if they have their own
	Dice    *record.Dice // of dropout; nil: there is none
	Dropout float64      // the dropped share of the inputs of adapters
	Hidden  float64      // and of the additions to the residual stream
	Half    bool         // layers read and give bfloat16
	Form    exact.Form   // of the products of layers; its zero value: they are of float32
	Left    map[int]bool // layers that are left out
	// Seen gets the input [n, in] of each layer that may have an adapter, by the name of the layer; nil: it does not.
	Seen func(layer string, x *graph.Node)

	prefix string
}

// Float32Only has layers read, multiply and give float32.
func (w Weights) Float32Only() Weights {
	w.Half, w.Form = false, exact.Form{}
	return w
}

// times is x [n, in] times a weight over an axis of it.
func (w Weights) times(x, weight *graph.Node, axis int) *graph.Node {
	if w.Form == (exact.Form{}) {
		return graph.DotGeneral(x, []int{1}, nil, weight, []int{axis}, nil)
	}
	return record.Exact(x, weight, axis, w.Form)
}

// Dropped is what is added to the residual stream, less what is dropped of it.
func (w Weights) Dropped(x *graph.Node) *graph.Node { return w.Dice.Drop(x, w.Hidden) }

// rounded is x as layers read it, or give it.
func (w Weights) rounded(x *graph.Node) *graph.Node {
	if w.Half {
		return record.Half(x)
	}
	return x
}

// Own is the adapters of one sequence.
type Own struct {
	Nodes map[string]*graph.Node
	Scale *graph.Node // of their outputs: a scalar
}

// At returns the tensor with the given name after the prefix.
func (w Weights) At(name string) *graph.Node {
	node, ok := w.Nodes[w.prefix+name]
	if !ok {
		panic("model: no tensor " + w.prefix + name)
	}
	return node
}

// under returns the same tensors under a longer prefix.
func (w Weights) under(prefix string) Weights {
	w.prefix += prefix
	return w
}

// adapt adds to y, the outputs lo to hi of the layer with the weight name on x [n, in], what its adapter adds, if any.
func (w Weights) adapt(y, x *graph.Node, name string, lo, hi int) *graph.Node {
	layer := strings.TrimSuffix(w.prefix+name, ".weight")
	if w.Seen != nil {
		w.Seen(layer, x)
	}
	prefix := architecture.AdapterPrefix + layer
	if len(w.Each) > 0 {
		return w.adaptEach(y, x, prefix, lo, hi)
	}
	a, ok := w.Nodes[prefix+architecture.DownSuffix]
	if !ok {
		return y
	}
	b := graph.Slice(w.Nodes[prefix+architecture.UpSuffix], graph.AxisRange(lo, hi))
	return graph.Add(y, linear(graph.MulScalar(linear(w.Dice.Drop(x, w.Dropout), a), w.Scale), b))
}

// adaptEach is adapt with the adapters of the sequence that a row of x belongs to: there are as many rows of each.
func (w Weights) adaptEach(y, x *graph.Node, prefix string, lo, hi int) *graph.Node {
	if w.Each[0].Nodes[prefix+architecture.DownSuffix] == nil {
		return y
	}
	rows, added := dims(x)[0]/len(w.Each), make([]*graph.Node, len(w.Each))
	for i, o := range w.Each {
		inner := linear(graph.Slice(x, graph.AxisRange(i*rows, (i+1)*rows)), o.Nodes[prefix+architecture.DownSuffix])
		inner = graph.Mul(inner, graph.BroadcastToDims(o.Scale, dims(inner)...))
		added[i] = linear(inner, graph.Slice(o.Nodes[prefix+architecture.UpSuffix], graph.AxisRange(lo, hi)))
	}
	if len(added) == 1 {
		return graph.Add(y, added[0])
	}
	return graph.Add(y, graph.Concatenate(added, 0))
}

// linear is the layer with the weight name [out, in], and its adapter, on x [n, in].
func (w Weights) linear(name string, x *graph.Node) *graph.Node {
	x, weight := w.rounded(x), w.rounded(w.At(name))
	return w.rounded(w.adapt(w.times(x, weight, 1), x, name, 0, dims(weight)[0]))
}

// conv is x [n, in] times weight [in, out] plus bias [out].
func (w Weights) conv(x, weight, bias *graph.Node) *graph.Node {
	y := w.times(x, weight, 0)
	return graph.Add(y, down(bias, y))
}

// conv1D, as Hugging Face calls the dense layer of GPT-2, is the layer with the weight name [in, out], a bias and an
// adapter, on x [n, in].
func (w Weights) conv1D(name string, x *graph.Node) *graph.Node {
	x, weight := w.rounded(x), w.rounded(w.At(name+".weight"))
	return w.rounded(w.adapt(w.conv(x, weight, w.At(name+".bias")), x, name, 0, dims(weight)[1]))
}
