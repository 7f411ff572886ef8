package model

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
)

// decoder is Llama (Touvron et al. 2023) and what followed or preceded it with the same operators: rotary or learned
// positions, a norm before each sublayer, a feed-forward layer with or without a gate, and query heads that may share
// heads of keys and values. Config.form says which.
type decoder struct{ architecture string }

func (d decoder) names() names          { return namesOf(d.architecture) }
func (d decoder) prefix() string        { return d.names().whole }
func (d decoder) headName() string      { return d.names().head + ".weight" }
func (d decoder) embeddingName() string { return d.names().embed + ".weight" }

// positionOffset is the number of rows of learned positions before that of the first token.
const positionOffset = 2

// biased lists a linear layer [out, in] and its bias, if it has one.
func biased(std float64, name string, out, in int, bias bool) []Named {
	list := []Named{normal(std, name+".weight", out, in)}
	if bias {
		list = append(list, zeros(name+".bias", out))
	}
	return list
}

func (d decoder) tensors(c Config) []Named {
	n, width := d.names(), c.embedWidth()
	list := []Named{embedding(c.initStd, n.embed+".weight", c.vocab, width)}
	if n.positions != "" {
		list = append(list, embedding(c.initStd, n.positions+".weight", c.positions+positionOffset, c.width))
	}
	if width != c.width {
		list = append(list, normal(c.initStd, n.out+".weight", width, c.width))
		list = append(list, normal(c.initStd, n.in+".weight", c.width, width))
	}
	for i := range c.layers {
		list = append(list, d.layer(c, fmt.Sprintf(n.layer, i))...)
	}
	if !c.form.noFinal {
		list = append(list, c.form.norms(n.final, c.width)...)
	}
	if !c.tied {
		list = append(list, biased(c.initStd, n.head, c.vocab, width, c.form.headBias)...)
	}
	return list
}

// embedWidth is the width of the token embedding.
func (c Config) embedWidth() int {
	if c.form.embedding > 0 {
		return c.form.embedding
	}
	return c.width
}

// layer lists the tensors of a layer with the prefix h.
func (d decoder) layer(c Config, h string) []Named {
	n, f := d.names(), c.form
	width, q, kv := c.width, c.heads*c.headDim, c.kvHeads*c.headDim
	var list []Named
	add := func(std float64, name string, out, in int, bias bool) {
		if name != "" {
			list = append(list, biased(std, h+name, out, in, bias)...)
		}
	}
	add(c.initStd, n.qkv, q+2*kv, width, f.qkvBias)
	add(c.initStd, n.q, q, width, f.qkvBias)
	add(c.initStd, n.k, kv, width, f.qkvBias)
	add(c.initStd, n.v, kv, width, f.qkvBias)
	add(c.residualStd(), n.o, width, q, f.outBias)
	if f.qkNorm {
		list = append(list, f.norms(h+n.qNorm, c.headDim)...)
		list = append(list, f.norms(h+n.kNorm, c.headDim)...)
	}
	add(c.initStd, n.gateUp, 2*c.inner, width, f.mlpBias)
	add(c.initStd, n.gate, c.inner, width, f.mlpBias)
	add(c.initStd, n.up, c.inner, width, f.mlpBias)
	add(c.residualStd(), n.down, width, c.inner, f.mlpBias)
	for _, norm := range []string{n.before, n.attended, n.middle, n.fed} {
		if norm != "" {
			list = append(list, f.norms(h+norm, width)...)
		}
	}
	return list
}

func (d decoder) hidden(c Config, w weights, tokens *graph.Node, s sequence) *graph.Node {
	n := d.names()
	batch, length := dims(tokens)[0], dims(tokens)[1]
	var turns, local rope
	if c.form.dim > 0 {
		turns = s.rope(c.form.rotary)
		if c.form.local.theta > 0 {
			local = s.rope(c.form.local)
		}
	}
	x := graph.Reshape(lookup(w.at(n.embed+".weight"), tokens), batch*length, c.embedWidth())
	if c.form.embed > 0 {
		x = graph.MulScalar(x, c.form.embed)
	}
	if c.embedWidth() != c.width {
		x = w.linear(n.in+".weight", x)
	}
	if n.positions != "" {
		places := s.places(graph.Slice(w.at(n.positions+".weight"), graph.AxisRange(positionOffset)))
		x = graph.Add(x, graph.Reshape(places, batch*length, c.width))
	}
	x = w.dropped(x)
	for i := range c.layers {
		own := turns
		if c.form.local.theta > 0 && c.form.sliding(i) {
			own = local
		}
		b := block{c: c, w: w.under(fmt.Sprintf(n.layer, i)), n: n, a: s.layer(i), turns: own, view: c.viewOf(i)}
		x = b.apply(x)
	}
	if c.form.noFinal {
		return x
	}
	return w.normalised(c, n.final, x)
}

func (d decoder) output(c Config, w weights, x *graph.Node) *graph.Node {
	n := d.names()
	if c.embedWidth() != c.width {
		x = w.linear(n.out+".weight", x)
	}
	if c.tied {
		return capped(linear(x, w.at(n.embed+".weight")), c.form.logitCap)
	}
	return capped(w.biased(n.head, x, c.form.headBias), c.form.logitCap)
}

// block is one layer.
type block struct {
	c     Config
	w     weights
	n     names
	a     attention
	turns rope
	view  view
}

// apply is the layer on x [batch*length, width].
func (b block) apply(x *graph.Node) *graph.Node {
	f := b.c.form
	if f.after {
		x = b.norm(b.n.before, graph.Add(x, b.attend(x)))
		return b.norm(b.n.middle, graph.Add(x, b.feed(x)))
	}
	y := b.norm(b.n.before, x)
	attended := b.attend(y)
	if f.parallel {
		if !f.shared {
			y = b.norm(b.n.middle, x)
		}
		return graph.Add(graph.Add(x, attended), b.feed(y))
	}
	if f.sandwich {
		x = graph.Add(x, b.norm(b.n.attended, attended))
		return graph.Add(x, b.norm(b.n.fed, b.feed(b.norm(b.n.middle, x))))
	}
	x = graph.Add(x, attended)
	return graph.Add(x, b.feed(b.norm(b.n.middle, x)))
}

func (b block) norm(name string, x *graph.Node) *graph.Node { return b.w.normalised(b.c, name, x) }

// attend is attention and its output layer on y [batch*length, width].
func (b block) attend(y *graph.Node) *graph.Node {
	c := b.c
	var q, k, v *graph.Node
	if b.n.qkv == "" {
		project := func(name string, group int) *graph.Node {
			return graph.Reshape(b.w.biased(name, y, c.form.qkvBias), b.a.batch(), -1, c.kvHeads, group, c.headDim)
		}
		q = b.turned(b.n.qNorm, project(b.n.q, c.heads/c.kvHeads))
		k = b.turned(b.n.kNorm, project(b.n.k, 1))
		v = project(b.n.v, 1)
	} else {
		q, k, v = b.split(b.w.biased(b.n.qkv, y, c.form.qkvBias))
		q, k = b.turned(b.n.qNorm, q), b.turned(b.n.kNorm, k)
	}
	q, k = b.w.rounded(q), b.w.rounded(k)
	return b.w.dropped(b.w.biased(b.n.o, b.a.attend(q, k, v, b.view), c.form.outBias))
}

// split cuts a joint projection into queries, keys and values.
func (b block) split(x *graph.Node) (q, k, v *graph.Node) {
	c := b.c
	headed := func(x *graph.Node, group int) *graph.Node {
		return graph.Reshape(x, b.a.batch(), -1, c.kvHeads, group, c.headDim)
	}
	if b.n.heads { // of each head its query, key and value
		x = graph.Reshape(x, -1, c.heads, 3, c.headDim)
		part := func(i int) *graph.Node {
			return headed(graph.Slice(x, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(i, i+1)), 1)
		}
		return part(0), part(1), part(2)
	}
	part := func(lo, heads, group int) *graph.Node {
		return headed(graph.Slice(x, graph.AxisRange(), graph.AxisRange(lo*c.headDim, (lo+heads)*c.headDim)), group)
	}
	return part(0, c.heads, c.heads/c.kvHeads), part(c.heads, c.kvHeads, 1), part(c.heads+c.kvHeads, c.kvHeads, 1)
}

// turned normalises heads x [batch, length, kvHeads, group, headDim], if the model does so, and turns them by their
// positions.
func (b block) turned(norm string, x *graph.Node) *graph.Node {
	if b.c.form.qkNorm {
		shape := dims(x)
		x = graph.Reshape(b.norm(norm, graph.Reshape(x, -1, b.c.headDim)), shape...)
	}
	if b.turns.cos == nil {
		return x
	}
	return b.turns.turn(x)
}

// feed is the feed-forward layer on y [batch*length, width].
func (b block) feed(y *graph.Node) *graph.Node {
	f, inner := b.c.form, b.c.inner
	switch {
	case f.plain:
		y = f.activate(b.w.biased(b.n.up, y, f.mlpBias))
	case b.n.gateUp != "":
		both := b.w.biased(b.n.gateUp, y, f.mlpBias)
		gate := graph.Slice(both, graph.AxisRange(), graph.AxisRange(0, inner))
		y = graph.Mul(b.w.rounded(f.activate(gate)), graph.Slice(both, graph.AxisRange(), graph.AxisRange(inner)))
	default:
		y = graph.Mul(b.w.rounded(f.activate(b.w.biased(b.n.gate, y, f.mlpBias))), b.w.biased(b.n.up, y, f.mlpBias))
	}
	return b.w.dropped(b.w.biased(b.n.down, y, f.mlpBias))
}

// biased is the layer with the given name, its adapter and, if it has one, its bias, on x [n, in].
func (w weights) biased(name string, x *graph.Node, bias bool) *graph.Node {
	y := w.linear(name+".weight", x)
	if bias {
		y = graph.Add(y, down(w.at(name+".bias"), y))
	}
	return y
}
