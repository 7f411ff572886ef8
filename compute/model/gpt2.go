package model

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"
)

// gpt2 is the decoder of Radford et al. 2019: learned positions, layer norm before each sublayer, tanh GELU, biases
// everywhere, and the token embedding as output layer, unless the file says otherwise.
type gpt2 struct{}

func (gpt2) prefix() string        { return "transformer." }
func (gpt2) headName() string      { return "lm_head.weight" }
func (gpt2) embeddingName() string { return "transformer.wte.weight" }

func (gpt2) parse(f *fields, c *Config) {
	c.vocab = f.size("vocab_size", 50257, maxVocab)
	c.positions = f.size("n_positions", 1024, maxPositions, "max_position_embeddings", "n_ctx")
	c.width = f.size("n_embd", 768, maxWidth, "hidden_size")
	c.layers = f.size("n_layer", 12, maxLayers, "num_hidden_layers")
	c.heads = f.size("n_head", 12, maxWidth, "num_attention_heads")
	c.inner = f.size("n_inner", 4*c.width, 4*maxWidth)
	c.normEps = f.positive("layer_norm_epsilon", 1e-5, 1)
	c.kvHeads = c.heads
	if c.width%c.heads != 0 {
		f.fail("n_head", fmt.Sprintf("%d heads do not divide n_embd %d", c.heads, c.width), f.advice("choose a divisor"))
	}
	c.headDim = c.width / c.heads

	c.form.activation = word(f, "activation_function", "gelu_new", activations)
	c.tied = f.flag("tie_word_embeddings", true)
	c.form.unscaled = !f.flag("scale_attn_weights", true)
	c.form.byLayer = f.flag("scale_attn_by_inverse_layer_idx", false)
	f.only("add_cross_attention", false)
	if !f.published {
		for _, dropout := range []string{"resid_pdrop", "embd_pdrop", "attn_pdrop"} {
			f.only(dropout, 0, 0.1) // training has no dropout; 0.1 is what published files carry
		}
	}
	f.ignore("resid_pdrop", "embd_pdrop", "attn_pdrop", "reorder_and_upcast_attn", "summary_type", "summary_use_proj",
		"summary_activation", "summary_proj_to_labels", "summary_first_dropout")
}

func (gpt2) json(c Config) map[string]any {
	keys := map[string]any{
		"architectures": []string{"GPT2LMHeadModel"}, "activation_function": c.form.activation,
		"n_positions": c.positions, "n_embd": c.width, "n_layer": c.layers, "n_head": c.heads, "n_inner": c.inner,
		"layer_norm_epsilon": c.normEps, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
		"scale_attn_weights": !c.form.unscaled,
	}
	if c.form.byLayer {
		keys["scale_attn_by_inverse_layer_idx"] = true
	}
	return keys
}

func (gpt2) tensors(c Config) []Named {
	d := c.width
	list := []Named{
		embedding(c.initStd, "transformer.wte.weight", c.vocab, d),
		embedding(c.initStd, "transformer.wpe.weight", c.positions, d),
	}
	for i := range c.layers {
		h := fmt.Sprintf("transformer.h.%d.", i)
		list = append(list,
			ones(h+"ln_1.weight", d), zeros(h+"ln_1.bias", d),
			normal(c.initStd, h+"attn.c_attn.weight", d, 3*d), zeros(h+"attn.c_attn.bias", 3*d),
			normal(c.residualStd(), h+"attn.c_proj.weight", d, d), zeros(h+"attn.c_proj.bias", d),
			ones(h+"ln_2.weight", d), zeros(h+"ln_2.bias", d),
			normal(c.initStd, h+"mlp.c_fc.weight", d, c.inner), zeros(h+"mlp.c_fc.bias", c.inner),
			normal(c.residualStd(), h+"mlp.c_proj.weight", c.inner, d), zeros(h+"mlp.c_proj.bias", d),
		)
	}
	list = append(list, ones("transformer.ln_f.weight", d), zeros("transformer.ln_f.bias", d))
	if !c.tied {
		list = append(list, normal(c.initStd, "lm_head.weight", c.vocab, d))
	}
	return list
}

func (m gpt2) hidden(c Config, w weights, tokens *graph.Node, s sequence) *graph.Node {
	w = w.under("transformer.")
	batch, length := dims(tokens)[0], dims(tokens)[1]
	words := lookup(w.at("wte.weight"), tokens)
	x := w.dropped(graph.Reshape(graph.Add(words, s.places(w.at("wpe.weight"))), batch*length, c.width))
	for i := range c.layers {
		x = m.block(c, w.under(fmt.Sprintf("h.%d.", i)), x, s.layer(i), c.viewOf(i))
	}
	return layerNorm(x, w.at("ln_f.weight"), w.at("ln_f.bias"), c.normEps)
}

func (gpt2) output(c Config, w weights, x *graph.Node) *graph.Node {
	if !c.tied {
		return w.linear("lm_head.weight", x)
	}
	return linear(x, w.at("transformer.wte.weight"))
}

// block is one layer on x [batch*length, width].
func (gpt2) block(c Config, w weights, x *graph.Node, a attention, look view) *graph.Node {
	y := w.rounded(layerNorm(x, w.at("ln_1.weight"), w.at("ln_1.bias"), c.normEps))
	// The joint projection is cut in the weights, which are smaller than what they produce.
	part := func(i int) *graph.Node {
		columns := graph.AxisRange(i*c.width, (i+1)*c.width)
		out := conv1D(y, w.rounded(graph.Slice(w.at("attn.c_attn.weight"), graph.AxisRange(), columns)),
			graph.Slice(w.at("attn.c_attn.bias"), columns))
		out = w.rounded(w.adapt(out, y, "attn.c_attn", i*c.width, (i+1)*c.width))
		return graph.Reshape(out, a.batch(), -1, c.heads, 1, c.headDim)
	}
	y = a.attend(part(0), part(1), part(2), look)
	x = graph.Add(x, w.dropped(w.conv1D("attn.c_proj", y)))
	y = layerNorm(x, w.at("ln_2.weight"), w.at("ln_2.bias"), c.normEps)
	y = c.form.activate(w.conv1D("mlp.c_fc", y))
	return graph.Add(x, w.dropped(w.conv1D("mlp.c_proj", y)))
}
