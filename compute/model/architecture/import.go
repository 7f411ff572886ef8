package architecture

import (
	"slices"

	"github.com/starling-network/starling/compute/model/fields"
)

// harmless are keys of published files that say nothing about what a model computes from tokens: they are read by
// programs that train, generate, classify or convert, or were left behind by them.
var harmless = []string{"output_past", "_num_labels", "id2label", "label2id", "num_labels", "problem_type",
	"predict_special_tokens", "n_special", "gradient_checkpointing", "unsloth_fixed", "unsloth_version", "auto_map",
	"is_llama_config", "transformers.js_config", "_commit_hash", "_attn_implementation_autoset", "prefix",
	"finetuning_task",
	"max_length", "min_length", "do_sample", "temperature", "top_k", "top_p", "num_beams", "torchscript", "sep_token_id",
	"decoder_start_token_id", "cls_token_id", "forced_bos_token_id", "forced_eos_token_id", "suppress_tokens",
	"begin_suppress_tokens", "bad_words_ids", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
	"diversity_penalty", "num_beam_groups", "num_return_sequences", "early_stopping", "typical_p", "output_scores",
	"return_dict_in_generate", "exponential_decay_length_penalty", "encoder_no_repeat_ngram_size", "tokenizer_class",
	"tie_encoder_decoder", "tf_legacy_loss", "use_bfloat16", "router_aux_loss_coef", "quantization",
	"cache_implementation",
	"attention_dropout", "hidden_dropout", "dropout", "layerdrop", "classifier_dropout", "resid_pdrop", "embd_pdrop"}

// neutral are keys that change what a model computes, with the values at which they do not. A model whose family reads
// the key never comes here with it.
var neutral = map[string][]any{
	"quantization_config":                 {},
	"compression_config":                  {},
	"add_cross_attention":                 {false},
	"is_encoder_decoder":                  {false},
	"cross_attention_hidden_size":         {},
	"chunk_size_feed_forward":             {0},
	"rope_interleaved":                    {false},
	"alibi":                               {false},
	"qk_layernorm":                        {false},
	"use_qk_norm":                         {false},
	"attn_logit_softcapping":              {},
	"final_logit_softcapping":             {},
	"logit_scale":                         {1},
	"logits_scaling":                      {1},
	"embedding_multiplier":                {1},
	"residual_multiplier":                 {1},
	"attention_multiplier":                {},
	"attention_chunk_size":                {},
	"no_rope_layers":                      {},
	"partial_rotary_factor":               {1},
	"rope_scaling":                        {},
	"rope_parameters":                     {},
	"num_local_experts":                   {0, 1},
	"num_experts":                         {0, 1},
	"num_nextn_predict_layers":            {0},
	"use_bidirectional_attention":         {false},
	"is_causal":                           {true},
	"parallel_attn":                       {false},
	"use_parallel_residual":               {false},
	"scale_attn_by_inverse_layer_idx":     {false},
	"attention_bias":                      {false},
	"mlp_bias":                            {false},
	"query_pre_attn_scalar":               {},
	"full_attn_mod":                       {1},
	"sparse_attention":                    {},
	"cross_attention_layers":              {},
	"layer_norm_type":                     {},
	"normalization_function":              {"rms", "rmsnorm"},
	"scale_embedding":                     {false},
	"position_embedding_type":             {"absolute", "rope"},
	"rotary_pct":                          {1},
	"sandwich_norm":                       {false},
	"use_absolute_position_embeddings":    {false},
	"tie_word_embeddings_in_output_layer": {false},
}

// foreign goes through what a family did not read of a published file.
func foreign(f *fields.Reader) {
	for _, key := range f.Unknown() {
		if values, ok := neutral[key]; ok {
			f.Only(key, values...)
		}
	}
	// Heads that were cut off are not in the tensors; lists of none are in every file of an old transformers.
	if v, ok := f.Get("pruned_heads"); ok {
		if heads, _ := v.(map[string]any); len(heads) > 0 {
			f.Fail("pruned_heads", "heads that were cut off are not supported", fields.OtherModel)
		}
	}
	f.Ignore(slices.DeleteFunc(slices.Clone(harmless), func(key string) bool { return neutral[key] != nil })...)
	for key, v := range f.Raw {
		if v == nil {
			f.Ignore(key) // null is absent
		}
	}
}
