package model

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/record"
)

// llama is the decoder of Touvron et al. 2023: rotary positions, RMS norm before each sublayer, SwiGLU, no biases,
// and query heads that may share heads of keys and values.
type llama struct{}

func (llama) parse(f *fields, c *Config) {
	c.vocab = f.size("vocab_size", 32000, maxVocab)
	c.positions = f.size("max_position_embeddings", 2048, maxPositions)
	c.width = f.size("hidden_size", 4096, maxWidth)
	c.inner = f.size("intermediate_size", 11008, 4*maxWidth)
	c.layers = f.size("num_hidden_layers", 32, maxLayers)
	c.heads = f.size("num_attention_heads", 32, maxWidth)
	c.kvHeads = f.size("num_key_value_heads", c.heads, maxWidth)
	c.headDim = f.size("head_dim", max(1, c.width/c.heads), maxHeadDim)
	c.normEps = f.positive("rms_norm_eps", 1e-6, 1)
	c.tied = f.flag("tie_word_embeddings", false)
	c.ropeTheta = f.positive("rope_theta", 10000, 1e12)
	// Newer files hold rope_theta in rope_parameters.
	f.group("rope_parameters", func(inner *fields) {
		c.ropeTheta = inner.positive("rope_theta", c.ropeTheta, 1e12)
		inner.only("rope_type", "default")
	})
	if c.heads%c.kvHeads != 0 {
		f.fail("num_key_value_heads", fmt.Sprintf("%d does not divide num_attention_heads %d", c.kvHeads, c.heads),
			"choose a divisor")
	}
	if f.raw["head_dim"] == nil && c.width%c.heads != 0 {
		f.fail("num_attention_heads", fmt.Sprintf("%d heads do not divide hidden_size %d", c.heads, c.width),
			"choose a divisor, or set head_dim")
	}
	if c.headDim%2 != 0 || c.headDim > maxHeadDim {
		f.fail("head_dim", fmt.Sprintf("%d is odd, or above %d; rotary positions turn pairs", c.headDim, maxHeadDim),
			"choose an even size, or more heads")
	}
	f.only("hidden_act", "silu", "swish")
	f.only("attention_bias", false)
	f.only("mlp_bias", false)
	f.only("attention_dropout", 0)
	f.only("rope_scaling")
	f.ignore("pretraining_tp")
}

func (llama) json(c Config) map[string]any {
	return map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "hidden_act": "silu",
		"max_position_embeddings": c.positions, "hidden_size": c.width, "intermediate_size": c.inner,
		"num_hidden_layers": c.layers, "num_attention_heads": c.heads, "num_key_value_heads": c.kvHeads,
		"head_dim": c.headDim, "rms_norm_eps": c.normEps, "rope_theta": c.ropeTheta,
		"attention_bias": false, "mlp_bias": false, "attention_dropout": 0.0,
	}
}

func (llama) tensors(c Config) []Named {
	d, q, kv := c.width, c.heads*c.headDim, c.kvHeads*c.headDim
	list := []Named{embedding(c.initStd, "model.embed_tokens.weight", c.vocab, d)}
	for i := range c.layers {
		h := fmt.Sprintf("model.layers.%d.", i)
		list = append(list,
			normal(c.initStd, h+"self_attn.q_proj.weight", q, d),
			normal(c.initStd, h+"self_attn.k_proj.weight", kv, d),
			normal(c.initStd, h+"self_attn.v_proj.weight", kv, d),
			normal(c.residualStd(), h+"self_attn.o_proj.weight", d, q),
			normal(c.initStd, h+"mlp.gate_proj.weight", c.inner, d),
			normal(c.initStd, h+"mlp.up_proj.weight", c.inner, d),
			normal(c.residualStd(), h+"mlp.down_proj.weight", d, c.inner),
			ones(h+"input_layernorm.weight", d),
			ones(h+"post_attention_layernorm.weight", d),
		)
	}
	list = append(list, ones("model.norm.weight", d))
	if !c.tied {
		list = append(list, normal(c.initStd, "lm_head.weight", c.vocab, d))
	}
	return list
}

func (m llama) hidden(c Config, w weights, tokens *graph.Node, s sequence) *graph.Node {
	batch, length := dims(tokens)[0], dims(tokens)[1]
	positions := s.rope(c.ropeTheta, c.headDim)
	x := graph.Reshape(lookup(w.at("model.embed_tokens.weight"), tokens), batch*length, c.width)
	for i := range c.layers {
		x = m.block(c, w.under(fmt.Sprintf("model.layers.%d.", i)), x, s.layer(i), positions)
	}
	return rmsNorm(x, w.at("model.norm.weight"), c.normEps)
}

func (llama) output(c Config, w weights, x *graph.Node) *graph.Node {
	if c.tied {
		return linear(x, w.at("model.embed_tokens.weight"))
	}
	return w.linear("lm_head.weight", x)
}

// block is one layer on x [batch*length, width].
func (llama) block(c Config, w weights, x *graph.Node, a attention, positions rope) *graph.Node {
	y := rmsNorm(x, w.at("input_layernorm.weight"), c.normEps)
	project := func(name string, group int) *graph.Node {
		return graph.Reshape(w.linear(name, y), a.batch(), -1, c.kvHeads, group, c.headDim)
	}
	q := positions.turn(project("self_attn.q_proj.weight", c.heads/c.kvHeads))
	k := positions.turn(project("self_attn.k_proj.weight", 1))
	v := project("self_attn.v_proj.weight", 1)
	x = graph.Add(x, w.linear("self_attn.o_proj.weight", a.attend(q, k, v)))

	y = rmsNorm(x, w.at("post_attention_layernorm.weight"), c.normEps)
	y = graph.Mul(record.Silu(w.linear("mlp.gate_proj.weight", y)), w.linear("mlp.up_proj.weight", y))
	return graph.Add(x, w.linear("mlp.down_proj.weight", y))
}
