// Package rekey changes the weights of a model by random transforms that leave its function as it is, so that layers of
// models that were changed by different keys do not fit together. Unextractable Protocol Models (arXiv 2605.23464) does
// so between steps.
//
// For models whose norms are RMSNorm (Zhang and Sennrich 2019): the residual stream is rotated, with the gains of norms
// folded into the layers that read it (Ashkboos et al. 2024, arXiv 2401.15024). Some layers begin by a matrix that
// turns it from the rotation of the layers before to another one. So a layer of another key turns all of the stream to
// where no later layer reads it, and not its own sums alone. The units of feed-forward layers change
// their order and their scale; values are rotated within heads, with the output layer of attention; pairs of elements
// of queries and keys that rotary positions turn are turned by a further angle, and scaled against each other; heads
// change their order.
//
// The bits of the model change, by rounding alone. It draws no keys: its caller has a source of random words.
package rekey

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// ErrModel is returned for a model that has no such transforms.
var ErrModel = errors.New("rekey: the model has no transforms that leave its function as it is")

// Source gives the random words of a key.
type Source interface{ Uint64() uint64 }

// Check reports a model that Apply does not take.
func Check(c architecture.Config) error {
	f, n := c.Form, architecture.NamesOf(c.Architecture())
	_, adapted := c.LoRA()
	switch {
	case c.Architecture() == architecture.GPT2 || f.Norm != architecture.RMS || f.Plain || f.Parallel || f.Sandwich ||
		f.After || f.NoFinal || n.Q == "" || n.Gate == "" || n.Positions != "" || c.EmbedWidth() != c.Width:
		return fmt.Errorf("%w: of architecture %s; those in the form of Llama have: Llama, Mistral, Qwen 2 and 3", ErrModel,
			c.Architecture())
	case adapted:
		return fmt.Errorf("%w: it has adapters", ErrModel)
	}
	return nil
}

// Apply returns the model that a key makes of one, whose output layer is not tied to the embedding, and which has a
// matrix for the residual stream before each of some layers. Tensors that it gets stay as they are. Shapes and names
// are those of Config.Tensors. The error wraps ErrModel.
func Apply(c architecture.Config, tensors map[string]*tensor.Tensor, before []int, s Source) (architecture.Config,
	map[string]*tensor.Tensor, error) {
	if err := Check(c); err != nil {
		return c, nil, err
	}
	for _, layer := range before {
		if layer < 0 || layer >= c.Layers {
			return c, nil, fmt.Errorf("%w: no layer %d of %d", ErrModel, layer, c.Layers)
		}
	}
	k := &keyed{c: c, n: architecture.NamesOf(c.Architecture()), random: random{s}, in: tensors,
		out: map[string]*tensor.Tensor{}}
	for _, t := range c.Tensors() {
		if in := tensors[t.Name]; in == nil || !in.Shape.Equal(t.Shape) {
			return c, nil, fmt.Errorf("%w: no tensor %q of shape %v", ErrModel, t.Name, t.Shape)
		}
	}
	k.stream = k.rotation(c.Width)
	embed, head, final := k.n.Embed+".weight", k.n.Head+".weight", k.n.Final+".weight"
	e := k.matrix(embed)
	e.rows(k.stream)
	k.give(embed, e)
	turned := c.Turning(before)
	for i := range c.Layers {
		h := fmt.Sprintf(k.n.Layer, i)
		if turned.Form.Turned(i) {
			k.turning(h + k.n.Turn + ".weight")
		}
		k.layer(h)
	}
	h := k.matrix(embed)
	if !c.Tied {
		h = k.matrix(head)
	}
	h.columns(k.gain(final))
	h.rows(k.stream)
	k.give(head, h)
	if c.Form.HeadBias {
		k.give(k.n.Head+".bias", k.matrix(k.n.Head+".bias"))
	}
	return turned.Untied(), k.out, nil
}

// keyed is a model in work.
type keyed struct {
	random
	c      architecture.Config
	n      architecture.Names
	in     map[string]*tensor.Tensor
	out    map[string]*tensor.Tensor
	stream rotation // of the residual stream, where the model is in work
}

// turning makes the matrix that turns the residual stream from its rotation to another one.
func (k *keyed) turning(name string) {
	m := unit(k.c.Width)
	if k.in[name] != nil {
		m = k.matrix(name)
	}
	m.rows(k.stream) // columns read the stream
	k.stream = k.rotation(k.c.Width)
	m = m.transposed()
	m.rows(k.stream)
	k.give(name, m.transposed())
}

// layer changes the tensors of one layer.
func (k *keyed) layer(h string) {
	c := k.c
	before, middle := k.gain(h+k.n.Before+".weight"), k.gain(h+k.n.Middle+".weight")
	group, d := c.Heads/c.KVHeads, c.HeadDim
	kv := k.order(c.KVHeads) // new place of each head of keys and values
	var queries []int
	for _, of := range kv {
		for _, g := range k.order(group) {
			queries = append(queries, of*group+g)
		}
	}
	read := func(name string, gain []float64, bias bool, change func(m matrix)) {
		m := k.matrix(h + name + ".weight")
		m.columns(gain)
		m.rows(k.stream)
		change(m)
		k.give(h+name+".weight", m)
		if bias {
			b := k.matrix(h + name + ".bias")
			change(b)
			k.give(h+name+".bias", b)
		}
	}
	turns := make([]turn, c.KVHeads)
	values := make([]rotation, c.KVHeads)
	for i := range turns {
		turns[i], values[i] = k.turn(), k.rotation(d)
	}
	read(k.n.Q, before, c.Form.QKVBias, func(m matrix) {
		for head := range c.Heads {
			turns[head/group].apply(m, head*d, false)
		}
		m.blocks(queries, d)
	})
	read(k.n.K, before, c.Form.QKVBias, func(m matrix) {
		for head := range c.KVHeads {
			turns[head].apply(m, head*d, true)
		}
		m.blocks(kv, d)
	})
	read(k.n.V, before, c.Form.QKVBias, func(m matrix) {
		for head := range c.KVHeads {
			values[head].downwards(m, head*d)
		}
		m.blocks(kv, d)
	})
	units, scale := k.order(c.Inner), make([]float64, c.Inner)
	for i := range scale {
		scale[i] = 0.5 + k.uniform()
	}
	read(k.n.Gate, middle, c.Form.MLPBias, func(m matrix) { m.blocks(units, 1) })
	read(k.n.Up, middle, c.Form.MLPBias, func(m matrix) {
		m.scaleRows(scale)
		m.blocks(units, 1)
	})
	k.write(h+k.n.O, c.Form.OutBias, func(m matrix) { // columns are rows of its transpose
		for head := range c.Heads {
			values[head/group].downwards(m, head*d)
		}
		m.blocks(queries, d)
	})
	for i := range scale {
		scale[i] = 1 / scale[i]
	}
	k.write(h+k.n.Down, c.Form.MLPBias, func(m matrix) {
		m.scaleRows(scale)
		m.blocks(units, 1)
	})
	for _, norm := range []string{k.n.QNorm, k.n.KNorm} {
		if c.Form.QKNorm {
			k.give(h+norm+".weight", k.matrix(h+norm+".weight"))
		}
	}
}

// write changes a layer that adds to the residual stream. change gets the transpose of its weights.
func (k *keyed) write(name string, bias bool, change func(m matrix)) {
	m := k.matrix(name + ".weight").transposed()
	change(m)
	m.rows(k.stream)
	k.give(name+".weight", m.transposed())
	if bias {
		b := k.matrix(name + ".bias").transposed()
		b.rows(k.stream)
		k.give(name+".bias", b.transposed())
	}
}

// gain is that of a norm, which becomes one.
func (k *keyed) gain(name string) []float64 {
	m := k.matrix(name)
	one := matrix{n: 1, m: make([]float64, len(m.m))}
	for i := range one.m {
		one.m[i] = 1
	}
	k.give(name, one)
	return m.m
}

// matrix is a tensor [rows, n], or a vector [rows, 1], in float64.
func (k *keyed) matrix(name string) matrix {
	t := k.in[name]
	m := matrix{n: 1, m: make([]float64, t.Shape.Elements())}
	if len(t.Shape.Dims) == 2 {
		m.n = t.Shape.Dims[1]
	}
	for i, x := range t.F32() {
		m.m[i] = float64(x)
	}
	return m
}

// give rounds a tensor of the model that is made. One that the model did not have is a matrix.
func (k *keyed) give(name string, m matrix) {
	shape := tensor.Make(tensor.Float32, len(m.m)/m.n, m.n)
	if t := k.in[name]; t != nil {
		shape = t.Shape
	}
	t := tensor.New(shape)
	for i, x := range m.m {
		t.F32()[i] = float32(x)
	}
	k.out[name] = t
}

// random draws from a source.
type random struct{ s Source }

// uniform is a number in [0, 1).
func (r random) uniform() float64 { return float64(r.s.Uint64()>>11) * 0x1p-53 }

// below is a number below n.
func (r random) below(n int) int {
	high, _ := bits.Mul64(r.s.Uint64(), uint64(n)) // the bias is n/2^64
	return int(high)
}

// order is a random order: at each place the number that comes there.
func (r random) order(n int) []int {
	list := make([]int, n)
	for i := range list {
		j := r.below(i + 1)
		list[i] = list[j]
		list[j] = i
	}
	return list
}

// angle is the cosine and the sine of a random angle.
func (r random) angle() (cos, sin float64) {
	for {
		x, y := 2*r.uniform()-1, 2*r.uniform()-1
		if size := float64(x*x) + float64(y*y); size > 0.01 && size <= 1 {
			root := math.Sqrt(size)
			return x / root, y / root
		}
	}
}
