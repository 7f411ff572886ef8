// Package modeltest holds configurations of small models for the tests of packages that read or compute models. It does
// not parse them.
package modeltest

// GPT2 is the config.json of a small GPT-2, with every size different from the others that it could be mistaken for.
func GPT2() map[string]any {
	return map[string]any{"vocab_size": 11, "n_positions": 8, "n_embd": 12, "n_layer": 2, "n_head": 3, "n_inner": 20}
}

// Llama is the config.json of a small Llama, with every size different from the others that it could be mistaken for.
func Llama() map[string]any {
	return map[string]any{"vocab_size": 11, "max_position_embeddings": 8, "hidden_size": 12, "intermediate_size": 20,
		"num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 3, "head_dim": 4}
}

// With sets a key of a configuration, and returns it.
func With(raw map[string]any, key string, value any) map[string]any {
	raw[key] = value
	return raw
}
