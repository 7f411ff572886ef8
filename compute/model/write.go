package model

import "strings"

// json writes the keys that parse reads. A key that does not differ from what every Llama has is written for Llama
// alone, as its files have it.
func (d decoder) json(c Config) map[string]any {
	f := c.form
	keys := map[string]any{
		"max_position_embeddings": c.positions, "hidden_size": c.width, "intermediate_size": c.inner,
		"num_hidden_layers": c.layers, "num_attention_heads": c.heads, "attention_dropout": 0.0,
	}
	if f.dim > 0 {
		f.rotary.json(keys, c.headDim)
	}
	switch d.architecture {
	case NeoX:
		keys["architectures"] = []string{"GPTNeoXForCausalLM"}
		neoxJSON(keys, c)
	case OPT:
		keys["architectures"] = []string{"OPTForCausalLM"}
		optJSON(keys, c)
	case Phi:
		keys["architectures"] = []string{"PhiForCausalLM"}
		keys["partial_rotary_factor"] = float64(f.dim) / float64(c.headDim)
		keys["num_key_value_heads"], keys["layer_norm_eps"], keys["hidden_act"] = c.kvHeads, c.normEps, f.activation
		keys["head_dim"], keys["qk_layernorm"] = c.headDim, false
		keys["resid_pdrop"], keys["embd_pdrop"] = 0.0, 0.0
	default:
		keys["num_key_value_heads"], keys["head_dim"], keys["rms_norm_eps"] = c.kvHeads, c.headDim, c.normEps
		laterJSON(d.architecture, keys, c)
	}
	return keys
}

// classes are the names that transformers gives to the models.
var classes = map[string]string{Llama: "Llama", Mistral: "Mistral", Qwen2: "Qwen2", Qwen3: "Qwen3", Gemma: "Gemma",
	Gemma2: "Gemma2", Gemma3: "Gemma3", Phi3: "Phi3"}

// laterJSON writes the keys of Llama and those that came after it.
func laterJSON(architecture string, keys map[string]any, c Config) {
	f := c.form
	keys["architectures"] = []string{classes[architecture] + "ForCausalLM"}
	keys["hidden_act"] = "silu"
	if f.activation != "" {
		keys["hidden_act"] = f.activation
	}
	switch architecture {
	case Llama:
		keys["attention_bias"], keys["mlp_bias"] = f.qkvBias, f.mlpBias
	case Qwen2:
		keys["use_sliding_window"] = f.window > 0
	case Qwen3:
		keys["attention_bias"], keys["use_sliding_window"] = f.qkvBias, f.window > 0
	case Gemma, Gemma2, Gemma3:
		keys["hidden_act"], keys["hidden_activation"], keys["attention_bias"] = f.activation, f.activation, f.qkvBias
	}
	if f.sandwich {
		keys["query_pre_attn_scalar"] = f.scale
		keys["attn_logit_softcapping"], keys["final_logit_softcapping"] = orNull(f.scoreCap), orNull(f.logitCap)
	}
	if architecture == Gemma3 {
		keys["rope_local_base_freq"] = 10000.0
		if f.local.theta > 0 {
			keys["rope_local_base_freq"] = f.local.theta
		}
	}
	if f.slides != "" {
		keys["sliding_window"] = f.window
		keys["layer_types"] = layerTypes(f.slides)
	} else if architecture != Llama && architecture != Gemma {
		keys["sliding_window"] = nil
		if f.sandwich {
			keys["layer_types"] = layerTypes(strings.Repeat(string(full), c.layers))
		}
	}
}

func orNull(x float64) any {
	if x == 0 {
		return nil
	}
	return x
}

// layerTypes is form.slides as transformers writes it.
func layerTypes(slides string) []string {
	types := make([]string, len(slides))
	for i := range types {
		types[i] = "full_attention"
		if slides[i] == slide {
			types[i] = "sliding_attention"
		}
	}
	return types
}

func neoxJSON(keys map[string]any, c Config) {
	f := c.form
	keys["layer_norm_eps"], keys["hidden_act"] = c.normEps, f.activation
	keys["rotary_pct"], keys["rotary_emb_base"] = float64(f.dim)/float64(c.headDim), f.theta
	keys["use_parallel_residual"], keys["attention_bias"] = f.parallel, f.qkvBias
	keys["hidden_dropout"] = 0.0
}

func optJSON(keys map[string]any, c Config) {
	f := c.form
	delete(keys, "intermediate_size")
	keys["ffn_dim"], keys["word_embed_proj_dim"] = c.inner, c.embedWidth()
	keys["activation_function"], keys["enable_bias"] = f.activation, f.qkvBias
	keys["do_layer_norm_before"], keys["layer_norm_elementwise_affine"] = !f.after, true
	keys["_remove_final_layer_norm"] = f.noFinal && !f.after
	keys["dropout"], keys["layerdrop"] = 0.0, 0.0
}
