package decoder

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/activation"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/attention"
	"github.com/starling-network/starling/compute/model/sequence"
)

// decoderNetwork is the computation of every architecture but GPT-2.
type decoderNetwork struct{ n architecture.Names }

func (d decoderNetwork) hidden(c architecture.Config, w Weights, tokens *graph.Node, s sequence.Sequence) *graph.Node {
	n := d.n
	batch, length := dims(tokens)[0], dims(tokens)[1]
	var turns, local attention.Rope
	if c.Form.Dim > 0 {
		turns = s.Rope(c.Form.Rotary)
		if c.Form.Local.Theta > 0 {
			local = s.Rope(c.Form.Local)
		}
	}
	x := graph.Reshape(lookup(w.At(n.Embed+".weight"), tokens), batch*length, c.EmbedWidth())
	if c.Form.Embed > 0 {
		x = graph.MulScalar(x, c.Form.Embed)
	}
	if c.EmbedWidth() != c.Width {
		x = w.linear(n.In+".weight", x)
	}
	if n.Positions != "" {
		places := s.Places(graph.Slice(w.At(n.Positions+".weight"), graph.AxisRange(architecture.PositionOffset)))
		x = graph.Add(x, graph.Reshape(places, batch*length, c.Width))
	}
	x = w.Dropped(x)
	for i := range c.Layers {
		if w.Left[i] {
			continue
		}
		own := turns
		if c.Form.Local.Theta > 0 && c.Form.Sliding(i) {
			own = local
		}
		b := block{c: c, w: w.under(fmt.Sprintf(n.Layer, i)), n: n, a: s.Layer(i), turns: own, view: attention.ViewOf(c, i)}
		if c.Form.Turned(i) {
			x = b.w.linear(n.Turn+".weight", x)
		}
		x = b.apply(x)
	}
	if c.Form.NoFinal {
		return x
	}
	return w.normalised(c, n.Final, x)
}

func (d decoderNetwork) output(c architecture.Config, w Weights, x *graph.Node) *graph.Node {
	n := d.n
	if c.EmbedWidth() != c.Width {
		x = w.linear(n.Out+".weight", x)
	}
	if c.Tied {
		return attention.Capped(linear(x, w.At(n.Embed+".weight")), c.Form.LogitCap)
	}
	return attention.Capped(w.biased(n.Head, x, c.Form.HeadBias), c.Form.LogitCap)
}

// block is one layer.
type block struct {
	c     architecture.Config
	w     Weights
	n     architecture.Names
	a     sequence.Attender
	turns attention.Rope
	view  attention.View
}

// apply is the layer on x [batch*length, width].
func (b block) apply(x *graph.Node) *graph.Node {
	f := b.c.Form
	if f.After {
		x = b.norm(b.n.Before, graph.Add(x, b.attend(x)))
		return b.norm(b.n.Middle, graph.Add(x, b.feed(x)))
	}
	y := b.norm(b.n.Before, x)
	attended := b.attend(y)
	if f.Parallel {
		if !f.Shared {
			y = b.norm(b.n.Middle, x)
		}
		return graph.Add(graph.Add(x, attended), b.feed(y))
	}
	if f.Sandwich {
		x = graph.Add(x, b.norm(b.n.Attended, attended))
		return graph.Add(x, b.norm(b.n.Fed, b.feed(b.norm(b.n.Middle, x))))
	}
	x = graph.Add(x, attended)
	return graph.Add(x, b.feed(b.norm(b.n.Middle, x)))
}

func (b block) norm(name string, x *graph.Node) *graph.Node { return b.w.normalised(b.c, name, x) }

// attend is attention and its output layer on y [batch*length, width].
func (b block) attend(y *graph.Node) *graph.Node {
	c := b.c
	var q, k, v *graph.Node
	if b.n.QKV == "" {
		project := func(name string, group int) *graph.Node {
			return graph.Reshape(b.w.biased(name, y, c.Form.QKVBias), b.a.Batch(), -1, c.KVHeads, group, c.HeadDim)
		}
		q = b.turned(b.n.QNorm, project(b.n.Q, c.Heads/c.KVHeads))
		k = b.turned(b.n.KNorm, project(b.n.K, 1))
		v = project(b.n.V, 1)
	} else {
		q, k, v = b.split(b.w.biased(b.n.QKV, y, c.Form.QKVBias))
		q, k = b.turned(b.n.QNorm, q), b.turned(b.n.KNorm, k)
	}
	q, k = b.w.rounded(q), b.w.rounded(k)
	return b.w.Dropped(b.w.biased(b.n.O, b.a.Attend(q, k, v, b.view), c.Form.OutBias))
}

// split cuts a joint projection into queries, keys and values.
func (b block) split(x *graph.Node) (q, k, v *graph.Node) {
	c := b.c
	headed := func(x *graph.Node, group int) *graph.Node {
		return graph.Reshape(x, b.a.Batch(), -1, c.KVHeads, group, c.HeadDim)
	}
	if b.n.Heads { // of each head its query, key and value
		x = graph.Reshape(x, -1, c.Heads, 3, c.HeadDim)
		part := func(i int) *graph.Node {
			return headed(graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(i, i+1)), 1)
		}
		return part(0), part(1), part(2)
	}
	part := func(lo, heads, group int) *graph.Node {
		return headed(graph.Slice(x, graph.AxisRange(), graph.AxisRange(lo*c.HeadDim, (lo+heads)*c.HeadDim)), group)
	}
	return part(0, c.Heads, c.Heads/c.KVHeads), part(c.Heads, c.KVHeads, 1), part(c.Heads+c.KVHeads, c.KVHeads, 1)
}

// turned normalises heads x [batch, length, kvHeads, group, headDim], if the model does so, and turns them by their
// positions.
func (b block) turned(norm string, x *graph.Node) *graph.Node {
	if b.c.Form.QKNorm {
		shape := dims(x)
		x = graph.Reshape(b.norm(norm, graph.Reshape(x, -1, b.c.HeadDim)), shape...)
	}
	if b.turns.None() {
		return x
	}
	return b.turns.Turn(x)
}

// feed is the feed-forward layer on y [batch*length, width].
func (b block) feed(y *graph.Node) *graph.Node {
	f, inner := b.c.Form, b.c.Inner
	switch {
	case f.Plain:
		y = activation.Apply(f, b.w.biased(b.n.Up, y, f.MLPBias))
	case b.n.GateUp != "":
		both := b.w.biased(b.n.GateUp, y, f.MLPBias)
		gate := graph.Slice(both, graph.AxisRange(), graph.AxisRange(0, inner))
		y = graph.Mul(b.w.rounded(activation.Apply(f, gate)), graph.Slice(both, graph.AxisRange(), graph.AxisRange(inner)))
	default:
		y = graph.Mul(b.w.rounded(activation.Apply(f, b.w.biased(b.n.Gate, y, f.MLPBias))), b.w.biased(b.n.Up, y, f.MLPBias))
	}
	return b.w.Dropped(b.w.biased(b.n.Down, y, f.MLPBias))
}

// biased is the layer with the given name, its adapter and, if it has one, its bias, on x [n, in].
func (w Weights) biased(name string, x *graph.Node, bias bool) *graph.Node {
	y := w.linear(name+".weight", x)
	if bias {
		y = graph.Add(y, down(w.At(name+".bias"), y))
	}
	return y
}
