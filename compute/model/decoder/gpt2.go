package decoder

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/activation"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/attention"
	"github.com/starling-network/starling/compute/model/norm"
	"github.com/starling-network/starling/compute/model/sequence"
)

// gpt2Network is the computation of GPT-2.
type gpt2Network struct{}

func (m gpt2Network) hidden(c architecture.Config, w Weights, tokens *graph.Node, s sequence.Sequence) *graph.Node {
	w = w.under("transformer.")
	batch, length := dims(tokens)[0], dims(tokens)[1]
	words := lookup(w.At("wte.weight"), tokens)
	x := w.Dropped(graph.Reshape(graph.Add(words, s.Places(w.At("wpe.weight"))), batch*length, c.Width))
	for i := range c.Layers {
		if w.Left[i] {
			continue
		}
		x = m.block(c, w.under(fmt.Sprintf("h.%d.", i)), x, s.Layer(i), attention.ViewOf(c, i))
	}
	return norm.Layer(x, w.At("ln_f.weight"), w.At("ln_f.bias"), c.NormEps)
}

func (gpt2Network) output(c architecture.Config, w Weights, x *graph.Node) *graph.Node {
	if !c.Tied {
		return w.linear("lm_head.weight", x)
	}
	return linear(x, w.At("transformer.wte.weight"))
}

// block is one layer on x [batch*length, width].
func (gpt2Network) block(c architecture.Config, w Weights, x *graph.Node, a sequence.Attender,
	look attention.View) *graph.Node {
	y := w.rounded(norm.Layer(x, w.At("ln_1.weight"), w.At("ln_1.bias"), c.NormEps))
	// The joint projection is cut in the weights, which are smaller than its output.
	part := func(i int) *graph.Node {
		columns := graph.AxisRange(i*c.Width, (i+1)*c.Width)
		out := w.conv(y, w.rounded(graph.Slice(w.At("attn.c_attn.weight"), graph.AxisRange(), columns)),
			graph.Slice(w.At("attn.c_attn.bias"), columns))
		out = w.rounded(w.adapt(out, y, "attn.c_attn", i*c.Width, (i+1)*c.Width))
		return graph.Reshape(out, a.Batch(), -1, c.Heads, 1, c.HeadDim)
	}
	y = a.Attend(part(0), part(1), part(2), look)
	x = graph.Add(x, w.Dropped(w.conv1D("attn.c_proj", y)))
	y = norm.Layer(x, w.At("ln_2.weight"), w.At("ln_2.bias"), c.NormEps)
	y = activation.Apply(c.Form, w.conv1D("mlp.c_fc", y))
	return graph.Add(x, w.Dropped(w.conv1D("mlp.c_proj", y)))
}
