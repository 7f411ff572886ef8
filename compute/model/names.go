package model

// names are the names of the tensors of a decoder, without the suffixes .weight and .bias. An empty one does not occur.
type names struct {
	whole     string // prefix of all but the output layer
	embed     string
	positions string // learned, from the third row on
	in, out   string // between the width of the embedding and that of the residual stream
	layer     string // prefix of a layer, with its number
	q, k, v   string
	qkv       string // in one, instead of q, k and v
	heads     bool   // qkv is cut by heads first
	o         string
	qNorm     string
	kNorm     string
	gate, up  string // of a plain layer, up alone
	gateUp    string // in one
	down      string
	before    string // norm before attention
	middle    string // norm before the feed-forward layer
	attended  string // norm of what attention gives
	fed       string // norm of what the feed-forward layer gives
	final     string
	head      string
}

func llamaNames() names {
	return names{whole: "model.", embed: "model.embed_tokens", layer: "model.layers.%d.",
		q: "self_attn.q_proj", k: "self_attn.k_proj", v: "self_attn.v_proj", o: "self_attn.o_proj",
		qNorm: "self_attn.q_norm", kNorm: "self_attn.k_norm",
		gate: "mlp.gate_proj", up: "mlp.up_proj", down: "mlp.down_proj",
		before: "input_layernorm", middle: "post_attention_layernorm", final: "model.norm", head: "lm_head"}
}

// namesOf returns the names of an architecture.
func namesOf(architecture string) names {
	n := llamaNames()
	switch architecture {
	case Gemma2, Gemma3:
		n.attended, n.middle, n.fed = "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"
	case Phi:
		n.o, n.gate, n.up, n.down = "self_attn.dense", "", "mlp.fc1", "mlp.fc2"
		n.middle, n.final = "", "model.final_layernorm"
	case Phi3:
		n.q, n.k, n.v, n.qkv = "", "", "", "self_attn.qkv_proj"
		n.gate, n.up, n.gateUp = "", "", "mlp.gate_up_proj"
	case NeoX:
		return names{whole: "gpt_neox.", embed: "gpt_neox.embed_in", layer: "gpt_neox.layers.%d.",
			qkv: "attention.query_key_value", heads: true, o: "attention.dense",
			up: "mlp.dense_h_to_4h", down: "mlp.dense_4h_to_h",
			before: "input_layernorm", middle: "post_attention_layernorm",
			final: "gpt_neox.final_layer_norm", head: "embed_out"}
	case OPT:
		n = names{whole: "model.", embed: "model.decoder.embed_tokens", positions: "model.decoder.embed_positions",
			in: "model.decoder.project_in", out: "model.decoder.project_out", layer: "model.decoder.layers.%d.",
			q: "self_attn.q_proj", k: "self_attn.k_proj", v: "self_attn.v_proj", o: "self_attn.out_proj",
			up: "fc1", down: "fc2", before: "self_attn_layer_norm", middle: "final_layer_norm",
			final: "model.decoder.final_layer_norm", head: "lm_head"}
	}
	return n
}
