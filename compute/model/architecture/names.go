package architecture

// Names are the names of the tensors of a decoder, without the suffixes .weight and .bias. An empty one does not occur.
type Names struct {
	whole     string // prefix of all but the output layer
	Embed     string
	Positions string // learned, from the third row on
	In, Out   string // between the width of the embedding and that of the residual stream
	Layer     string // prefix of a layer, with its number
	Turn      string // of the residual stream, before a layer
	Q, K, V   string
	QKV       string // in one, instead of q, k and v
	Heads     bool   // qkv is cut by heads first
	O         string
	QNorm     string
	KNorm     string
	Gate, Up  string // of a plain layer, up alone
	GateUp    string // in one
	Down      string
	Before    string // norm before attention
	Middle    string // norm before the feed-forward layer
	Attended  string // norm of the output of attention
	Fed       string // norm of the output of the feed-forward layer
	Final     string
	Head      string
}

func llamaNames() Names {
	return Names{whole: "model.", Embed: "model.embed_tokens", Layer: "model.layers.%d.", Turn: "turn",
		Q: "self_attn.q_proj", K: "self_attn.k_proj", V: "self_attn.v_proj", O: "self_attn.o_proj",
		QNorm: "self_attn.q_norm", KNorm: "self_attn.k_norm",
		Gate: "mlp.gate_proj", Up: "mlp.up_proj", Down: "mlp.down_proj",
		Before: "input_layernorm", Middle: "post_attention_layernorm", Final: "model.norm", Head: "lm_head"}
}

// NamesOf returns the names of an architecture.
func NamesOf(architecture string) Names {
	n := llamaNames()
	switch architecture {
	case Gemma2, Gemma3:
		n.Attended, n.Middle, n.Fed = "post_attention_layernorm", "pre_feedforward_layernorm", "post_feedforward_layernorm"
	case Phi:
		n.O, n.Gate, n.Up, n.Down = "self_attn.dense", "", "mlp.fc1", "mlp.fc2"
		n.Middle, n.Final = "", "model.final_layernorm"
	case Phi3:
		n.Q, n.K, n.V, n.QKV = "", "", "", "self_attn.qkv_proj"
		n.Gate, n.Up, n.GateUp = "", "", "mlp.gate_up_proj"
	case NeoX:
		return Names{whole: "gpt_neox.", Embed: "gpt_neox.embed_in", Layer: "gpt_neox.layers.%d.",
			QKV: "attention.query_key_value", Heads: true, O: "attention.dense",
			Up: "mlp.dense_h_to_4h", Down: "mlp.dense_4h_to_h",
			Before: "input_layernorm", Middle: "post_attention_layernorm",
			Final: "gpt_neox.final_layer_norm", Head: "embed_out"}
	case OPT:
		n = Names{whole: "model.", Embed: "model.decoder.embed_tokens", Positions: "model.decoder.embed_positions",
			In: "model.decoder.project_in", Out: "model.decoder.project_out", Layer: "model.decoder.layers.%d.",
			Q: "self_attn.q_proj", K: "self_attn.k_proj", V: "self_attn.v_proj", O: "self_attn.out_proj",
			Up: "fc1", Down: "fc2", Before: "self_attn_layer_norm", Middle: "final_layer_norm",
			Final: "model.decoder.final_layer_norm", Head: "lm_head"}
	}
	return n
}
