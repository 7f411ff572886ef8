package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/fields"
	"github.com/starling-network/starling/compute/model/modeltest"
	"github.com/starling-network/starling/compute/optimizer"
)

// forms are small models of the families besides GPT-2 and Llama, with windows shorter than the test's sequences.
func forms(t testing.TB) map[string]architecture.Config {
	rotary := func(more map[string]any) map[string]any {
		raw := map[string]any{"vocab_size": 11, "max_position_embeddings": 8, "hidden_size": 12, "intermediate_size": 20,
			"num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 6}
		maps.Copy(raw, more)
		return raw
	}
	out := map[string]architecture.Config{}
	for name, tc := range map[string]struct {
		architecture string
		raw          map[string]any
	}{
		"llama3": {architecture.Llama,
			rotary(map[string]any{"rope_scaling": map[string]any{"rope_type": "llama3", "factor": 8,
				"original_max_position_embeddings": 4}})},
		"yarn": {architecture.Llama, rotary(map[string]any{"attention_bias": true, "mlp_bias": true,
			"rope_scaling": map[string]any{"type": "yarn", "factor": 4}})},
		"mistral": {architecture.Mistral, rotary(map[string]any{"sliding_window": 2})},
		"qwen2":   {architecture.Qwen2, rotary(nil)},
		"qwen3": {architecture.Qwen3, rotary(map[string]any{"use_sliding_window": true, "sliding_window": 3,
			"max_window_layers": 1})},
		"gemma": {architecture.Gemma, rotary(nil)},
		"gemma2": {architecture.Gemma2, rotary(map[string]any{"sliding_window": 2, "attn_logit_softcapping": 2.0,
			"final_logit_softcapping": 4.0})},
		"gemma3": {architecture.Gemma3, rotary(map[string]any{"sliding_window": 2, "sliding_window_pattern": 2})},
		"phi3":   {architecture.Phi3, rotary(map[string]any{"num_key_value_heads": 2, "partial_rotary_factor": 0.7})},
		"phi": {architecture.Phi, map[string]any{"vocab_size": 11, "max_position_embeddings": 8, "hidden_size": 16,
			"intermediate_size": 20,
			"num_hidden_layers": 2, "num_attention_heads": 2}},
		"neox": {architecture.NeoX, map[string]any{"vocab_size": 11, "max_position_embeddings": 8, "hidden_size": 16,
			"intermediate_size": 20,
			"num_hidden_layers": 2, "num_attention_heads": 2}},
		"opt": {architecture.OPT, map[string]any{"vocab_size": 11, "max_position_embeddings": 8, "hidden_size": 12,
			"ffn_dim":           20,
			"num_hidden_layers": 2, "num_attention_heads": 2, "word_embed_proj_dim": 6, "do_layer_norm_before": false,
			"activation_function": "gelu",
			"enable_bias":         false}}, // scores do not depend on the bias of keys, so that it has no gradient
		"gpt2": {architecture.GPT2, modeltest.With(modeltest.With(modeltest.GPT2(), "tie_word_embeddings", false),
			"scale_attn_by_inverse_layer_idx",
			true)},
	} {
		out[name] = mustParse(t, tc.architecture, tc.raw)
	}
	return out
}

// Logits of these forms are held against PyTorch's in node/compat.
func TestGradientsOfForms(t *testing.T) {
	for name, c := range forms(t) {
		task, err := Language(c, testBatch, testLength)
		if err != nil {
			t.Fatal(err)
		}
		checkGradients(t, name, task, strongWeights(c.Tensors()), state{"tokens": someTokens(c, testBatch, testLength+1, 6)},
			1e-2)
	}
}

func TestExtendOfForms(t *testing.T) {
	for name, c := range forms(t) {
		n := c.Context()
		w, tokens := strongWeights(c.Tensors()), someTokens(c, 1, n, 3)
		p, err := Logits(c, 1, n)
		want := mustRun(t, mustCompile(t, p, err), inputs(w, tokens))["logits"].F32()
		for _, length := range []int{1, 3, n} {
			for k, got := range extend(t, c, w, tokens.I32(), length, n) {
				at := min((k+1)*length, n) - 1
				for j, x := range got {
					checkNear(t, fmt.Sprintf("%s by %d: logit %d of token %d", name, length, j, at), float64(x),
						float64(want[at*c.VocabSize()+j]), 5e-5)
				}
			}
		}
	}
}

// A window that is as long as the sequence is none, to the bit: the fused operator computes it.
func TestLongWindowIsNone(t *testing.T) {
	raw := modeltest.Llama()
	none := mustParse(t, architecture.Mistral, raw)
	long := mustParse(t, architecture.Mistral, modeltest.With(modeltest.Llama(), "sliding_window", testLength))
	w, tokens := strongWeights(none.Tensors()), someTokens(none, testBatch, testLength, 3)
	a, err := Logits(none, testBatch, testLength)
	first := mustRun(t, mustCompile(t, a, err), inputs(w, tokens))["logits"]
	b, err := Logits(long, testBatch, testLength)
	if second := mustRun(t, mustCompile(t, b, err), inputs(w, tokens))["logits"]; first.Root() != second.Root() {
		t.Error("the logits differ")
	}
}

// TestFormsSurvive writes and reads the config of every form, and adapts every layer of it.
func TestFormsSurvive(t *testing.T) {
	for name, c := range forms(t) {
		var raw map[string]any
		if err := json.Unmarshal(c.JSON(), &raw); err != nil {
			t.Fatal(err)
		}
		if again, err := architecture.Parse(c.Architecture(), raw); err != nil || again != c {
			t.Errorf("%s: read back as %+v, %v; want %+v", name, again, err, c)
		}
		if again, ignored, err := architecture.Import(c.Architecture(), raw); err != nil || again != c || len(ignored) > 0 {
			t.Errorf("%s: imported as %+v, %v, %v; want %+v", name, again, ignored, err, c)
		}
		a, err := c.Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{architecture.AllLinear}})
		if err != nil {
			t.Fatal(name, err)
		}
		task, err := Language(a, testBatch, testLength)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, err := task.TrainStep(optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}); err != nil {
			t.Error(name, err)
		}
		if slices.ContainsFunc(a.Adapters(), func(n architecture.Named) bool {
			return strings.Contains(n.Name, "embed_out") || strings.Contains(n.Name, "lm_head")
		}) {
			t.Errorf("%s: the output layer has an adapter", name)
		}
	}
}

func TestImportRefuses(t *testing.T) {
	for _, tc := range []struct {
		architecture string
		key          string
		value        any
	}{
		{architecture.Llama, "quantization_config", map[string]any{"bits": 4}},
		{architecture.Llama, "rope_scaling", map[string]any{"rope_type": "longrope", "short_factor": []any{1.0}}},
		{architecture.Llama, "rope_scaling", map[string]any{"rope_type": "llama3", "factor": 8.0, "new_factor": 2.0}},
		{architecture.Llama, "hidden_act", "mish"},
		{architecture.Llama, "final_logit_softcapping", 30.0},
		{architecture.GPT2, "add_cross_attention", true},
		{architecture.GPT2, "pruned_heads", map[string]any{"0": []any{1.0}}},
		{architecture.Phi, "qk_layernorm", true},
		{architecture.Mistral, "rope_interleaved", true},
	} {
		_, _, err := architecture.Import(tc.architecture, map[string]any{tc.key: tc.value})
		var bad *fields.Error
		if !errors.As(err, &bad) || !strings.HasPrefix(bad.Key, tc.key) || bad.Fix != fields.OtherModel {
			t.Errorf("%s %s: %v", tc.architecture, tc.key, err)
		}
	}
	for _, bad := range []any{"none", []any{}, map[string]any{"rope_type": 3},
		map[string]any{"rope_type": "yarn", "factor": -1.0}} {
		if _, _, err := architecture.Import(architecture.Llama, map[string]any{"rope_scaling": bad}); !errors.As(err,
			new(*fields.Error)) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
