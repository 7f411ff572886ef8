package architecture

import "strings"

// json writes the keys that parse reads. A key with the value of every Llama is written for Llama alone, as its files
// have it.
func (d decoder) json(c Config) map[string]any {
	f := c.Form
	keys := map[string]any{
		"max_position_embeddings": c.positions, "hidden_size": c.Width, "intermediate_size": c.Inner,
		"num_hidden_layers": c.Layers, "num_attention_heads": c.Heads, "attention_dropout": 0.0,
	}
	if f.Dim > 0 {
		rotaryJSON(f.Rotary, keys, c.HeadDim)
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
		keys["partial_rotary_factor"] = float64(f.Dim) / float64(c.HeadDim)
		keys["num_key_value_heads"], keys["layer_norm_eps"], keys["hidden_act"] = c.KVHeads, c.NormEps, f.Activation
		keys["head_dim"], keys["qk_layernorm"] = c.HeadDim, false
		keys["resid_pdrop"], keys["embd_pdrop"] = 0.0, 0.0
	default:
		keys["num_key_value_heads"], keys["head_dim"], keys["rms_norm_eps"] = c.KVHeads, c.HeadDim, c.NormEps
		laterJSON(d.architecture, keys, c)
	}
	return keys
}

// classes are the names that transformers gives to the models.
var classes = map[string]string{Llama: "Llama", Mistral: "Mistral", Qwen2: "Qwen2", Qwen3: "Qwen3", Gemma: "Gemma",
	Gemma2: "Gemma2", Gemma3: "Gemma3", Phi3: "Phi3"}

// laterJSON writes the keys of Llama and those that came after it.
func laterJSON(architecture string, keys map[string]any, c Config) {
	f := c.Form
	keys["architectures"] = []string{classes[architecture] + "ForCausalLM"}
	keys["hidden_act"] = "silu"
	if f.Activation != "" {
		keys["hidden_act"] = f.Activation
	}
	if f.turns != "" {
		keys[turnsKey] = f.turnsJSON()
	}
	switch architecture {
	case Llama:
		keys["attention_bias"], keys["mlp_bias"] = f.QKVBias, f.MLPBias
	case Qwen2:
		keys["use_sliding_window"] = f.Window > 0
	case Qwen3:
		keys["attention_bias"], keys["use_sliding_window"] = f.QKVBias, f.Window > 0
	case Gemma, Gemma2, Gemma3:
		keys["hidden_act"], keys["hidden_activation"], keys["attention_bias"] = f.Activation, f.Activation, f.QKVBias
	}
	if f.Sandwich {
		keys["query_pre_attn_scalar"] = f.Scale
		keys["attn_logit_softcapping"], keys["final_logit_softcapping"] = orNull(f.ScoreCap), orNull(f.LogitCap)
	}
	if architecture == Gemma3 {
		keys["rope_local_base_freq"] = 10000.0
		if f.Local.Theta > 0 {
			keys["rope_local_base_freq"] = f.Local.Theta
		}
	}
	if f.slides != "" {
		keys["sliding_window"] = f.Window
		keys["layer_types"] = layerTypes(f.slides)
	} else if architecture != Llama && architecture != Gemma {
		keys["sliding_window"] = nil
		if f.Sandwich {
			keys["layer_types"] = layerTypes(strings.Repeat(string(full), c.Layers))
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
	f := c.Form
	keys["layer_norm_eps"], keys["hidden_act"] = c.NormEps, f.Activation
	keys["rotary_pct"], keys["rotary_emb_base"] = float64(f.Dim)/float64(c.HeadDim), f.Theta
	keys["use_parallel_residual"], keys["attention_bias"] = f.Parallel, f.QKVBias
	keys["hidden_dropout"] = 0.0
}

func optJSON(keys map[string]any, c Config) {
	f := c.Form
	delete(keys, "intermediate_size")
	keys["ffn_dim"], keys["word_embed_proj_dim"] = c.Inner, c.EmbedWidth()
	keys["activation_function"], keys["enable_bias"] = f.Activation, f.QKVBias
	keys["do_layer_norm_before"], keys["layer_norm_elementwise_affine"] = !f.After, true
	keys["_remove_final_layer_norm"] = f.NoFinal && !f.After
	keys["dropout"], keys["layerdrop"] = 0.0, 0.0
}
