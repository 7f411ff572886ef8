package model

import (
	"strings"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/starling-network/starling/compute/model/architecture"
)

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
