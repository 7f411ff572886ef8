package architecture

import (
	"fmt"

	"github.com/starling-network/starling/compute/model/fields"
)

// gpt2 is the decoder of Radford et al. 2019: learned positions, layer norm before each sublayer, tanh GELU, biases
// everywhere, and the token embedding as output layer, unless the file says otherwise.
type gpt2 struct{}

func (gpt2) prefix() string { return "transformer." }

func (gpt2) headName() string { return "lm_head.weight" }

func (gpt2) embeddingName() string { return "transformer.wte.weight" }

func (gpt2) parse(f *fields.Reader, c *Config) {
	c.vocab = f.Size("vocab_size", 50257, maxVocab)
	c.positions = f.Size("n_positions", 1024, maxPositions, "max_position_embeddings", "n_ctx")
	c.Width = f.Size("n_embd", 768, maxWidth, "hidden_size")
	c.Layers = f.Size("n_layer", 12, maxLayers, "num_hidden_layers")
	c.Heads = f.Size("n_head", 12, maxWidth, "num_attention_heads")
	c.Inner = f.Size("n_inner", 4*c.Width, 4*maxWidth)
	c.NormEps = f.Positive("layer_norm_epsilon", 1e-5, 1)
	c.KVHeads = c.Heads
	if c.Width%c.Heads != 0 {
		f.Fail("n_head", fmt.Sprintf("%d heads do not divide n_embd %d", c.Heads, c.Width), f.Advice("choose a divisor"))
	}
	c.HeadDim = c.Width / c.Heads

	c.Form.Activation = fields.Word(f, "activation_function", "gelu_new", activations)
	c.Tied = f.Flag("tie_word_embeddings", true)
	c.Form.Unscaled = !f.Flag("scale_attn_weights", true)
	c.Form.ByLayer = f.Flag("scale_attn_by_inverse_layer_idx", false)
	f.Only("add_cross_attention", false)
	if !f.Published {
		for _, dropout := range []string{"resid_pdrop", "embd_pdrop", "attn_pdrop"} {
			f.Only(dropout, 0, 0.1) // training has no dropout; 0.1 is what published files carry
		}
	}
	f.Ignore("resid_pdrop", "embd_pdrop", "attn_pdrop", "reorder_and_upcast_attn", "summary_type", "summary_use_proj",
		"summary_activation", "summary_proj_to_labels", "summary_first_dropout")
}

func (gpt2) json(c Config) map[string]any {
	keys := map[string]any{
		"architectures": []string{"GPT2LMHeadModel"}, "activation_function": c.Form.Activation,
		"n_positions": c.positions, "n_embd": c.Width, "n_layer": c.Layers, "n_head": c.Heads, "n_inner": c.Inner,
		"layer_norm_epsilon": c.NormEps, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0,
		"scale_attn_weights": !c.Form.Unscaled,
	}
	if c.Form.ByLayer {
		keys["scale_attn_by_inverse_layer_idx"] = true
	}
	return keys
}

func (gpt2) tensors(c Config) []Named {
	d := c.Width
	list := []Named{
		embedding(c.initStd, "transformer.wte.weight", c.vocab, d),
		embedding(c.initStd, "transformer.wpe.weight", c.positions, d),
	}
	for i := range c.Layers {
		h := fmt.Sprintf("transformer.h.%d.", i)
		list = append(list,
			ones(h+"ln_1.weight", d), Zeros(h+"ln_1.bias", d),
			Normal(c.initStd, h+"attn.c_attn.weight", d, 3*d), Zeros(h+"attn.c_attn.bias", 3*d),
			Normal(residualStd(c), h+"attn.c_proj.weight", d, d), Zeros(h+"attn.c_proj.bias", d),
			ones(h+"ln_2.weight", d), Zeros(h+"ln_2.bias", d),
			Normal(c.initStd, h+"mlp.c_fc.weight", d, c.Inner), Zeros(h+"mlp.c_fc.bias", c.Inner),
			Normal(residualStd(c), h+"mlp.c_proj.weight", c.Inner, d), Zeros(h+"mlp.c_proj.bias", d),
		)
	}
	list = append(list, ones("transformer.ln_f.weight", d), Zeros("transformer.ln_f.bias", d))
	if !c.Tied {
		list = append(list, Normal(c.initStd, "lm_head.weight", c.vocab, d))
	}
	return list
}
