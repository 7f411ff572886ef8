package architecture

import (
	"fmt"
)

// decoder is Llama (Touvron et al. 2023) and what followed or preceded it with the same operators: rotary or learned
// positions, a norm before each sublayer, a feed-forward layer with or without a gate, and query heads that may share
// heads of keys and values. Config.form says which.
type decoder struct{ architecture string }

func (d decoder) names() Names { return NamesOf(d.architecture) }

func (d decoder) prefix() string { return d.names().whole }

func (d decoder) headName() string { return d.names().Head + ".weight" }

func (d decoder) embeddingName() string { return d.names().Embed + ".weight" }

// PositionOffset is the number of rows of learned positions before that of the first token.
const PositionOffset = 2

// biased lists a linear layer [out, in] and its bias, if it has one.
func biased(std float64, name string, out, in int, bias bool) []Named {
	list := []Named{Normal(std, name+".weight", out, in)}
	if bias {
		list = append(list, Zeros(name+".bias", out))
	}
	return list
}

func (d decoder) tensors(c Config) []Named {
	n, width := d.names(), c.EmbedWidth()
	list := []Named{embedding(c.initStd, n.Embed+".weight", c.vocab, width)}
	if n.Positions != "" {
		list = append(list, embedding(c.initStd, n.Positions+".weight", c.positions+PositionOffset, c.Width))
	}
	if width != c.Width {
		list = append(list, Normal(c.initStd, n.Out+".weight", width, c.Width))
		list = append(list, Normal(c.initStd, n.In+".weight", c.Width, width))
	}
	for i := range c.Layers {
		list = append(list, d.layer(c, i)...)
	}
	if !c.Form.NoFinal {
		list = append(list, c.Form.norms(n.Final, c.Width)...)
	}
	if !c.Tied {
		list = append(list, biased(c.initStd, n.Head, c.vocab, width, c.Form.HeadBias)...)
	}
	return list
}

// EmbedWidth is the width of the token embedding.
func (c Config) EmbedWidth() int {
	if c.Form.embedding > 0 {
		return c.Form.embedding
	}
	return c.Width
}

// layer lists the tensors of a layer.
func (d decoder) layer(c Config, layer int) []Named {
	n, f := d.names(), c.Form
	h := fmt.Sprintf(n.Layer, layer)
	width, q, kv := c.Width, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
	var list []Named
	if f.Turned(layer) {
		list = append(list, Normal(c.initStd, h+n.Turn+".weight", width, width))
	}
	add := func(std float64, name string, out, in int, bias bool) {
		if name != "" {
			list = append(list, biased(std, h+name, out, in, bias)...)
		}
	}
	add(c.initStd, n.QKV, q+2*kv, width, f.QKVBias)
	add(c.initStd, n.Q, q, width, f.QKVBias)
	add(c.initStd, n.K, kv, width, f.QKVBias)
	add(c.initStd, n.V, kv, width, f.QKVBias)
	add(residualStd(c), n.O, width, q, f.OutBias)
	if f.QKNorm {
		list = append(list, f.norms(h+n.QNorm, c.HeadDim)...)
		list = append(list, f.norms(h+n.KNorm, c.HeadDim)...)
	}
	add(c.initStd, n.GateUp, 2*c.Inner, width, f.MLPBias)
	add(c.initStd, n.Gate, c.Inner, width, f.MLPBias)
	add(c.initStd, n.Up, c.Inner, width, f.MLPBias)
	add(residualStd(c), n.Down, width, c.Inner, f.MLPBias)
	for _, norm := range []string{n.Before, n.Attended, n.Middle, n.Fed} {
		if norm != "" {
			list = append(list, f.norms(h+norm, width)...)
		}
	}
	return list
}
