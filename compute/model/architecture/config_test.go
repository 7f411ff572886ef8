package architecture

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/model/fields"
	"github.com/starling-network/starling/compute/model/modeltest"
	"github.com/starling-network/starling/compute/tensor"
)

func mustParse(t testing.TB, architecture string, raw map[string]any) Config {
	t.Helper()
	c, err := Parse(architecture, raw)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// tiny returns the models that numerical tests run on.
func tiny(t testing.TB) map[string]Config {
	return map[string]Config{
		"gpt2":         mustParse(t, GPT2, modeltest.GPT2()),
		"llama":        mustParse(t, Llama, modeltest.Llama()),
		"llama-tied":   mustParse(t, Llama, modeltest.With(modeltest.Llama(), "tie_word_embeddings", true)),
		"llama-turned": mustParse(t, Llama, modeltest.With(modeltest.Llama(), "starling_turns", []any{1, 2})),
	}
}

func TestParseDefaults(t *testing.T) {
	c := mustParse(t, GPT2, nil)
	if got := c.Parameters(); got != 124439808 {
		t.Errorf("default gpt2 has %d weights, the published one 124439808", got)
	}
	if c.Context() != 1024 || c.VocabSize() != 50257 || c.Architecture() != GPT2 {
		t.Errorf("default gpt2: context %d, vocabulary %d", c.Context(), c.VocabSize())
	}
	c = mustParse(t, Llama, nil)
	if got := c.Parameters(); got != 6738415616 {
		t.Errorf("default llama has %d weights, the published 7B 6738415616", got)
	}
}

func TestParseAliases(t *testing.T) {
	raw := map[string]any{"hidden_size": 96, "num_hidden_layers": 3.0, "num_attention_heads": json.Number("6"),
		"n_inner": nil}
	c := mustParse(t, GPT2, raw)
	if c.Width != 96 || c.Layers != 3 || c.Heads != 6 || c.Inner != 384 {
		t.Errorf("got %+v", c)
	}
	// Keys that published files have besides the sizes.
	mustParse(t, GPT2, map[string]any{"architectures": []any{"GPT2LMHeadModel"}, "model_type": "gpt2", "attn_pdrop": 0.1,
		"n_ctx": 1024, "n_positions": 1024, "summary_type": "cls_index", "bos_token_id": 50256, "eos_token_id": 50256,
		"task_specific_params": map[string]any{"text-generation": map[string]any{"do_sample": true}},
		"torch_dtype":          "float32"})
	mustParse(t, Llama, map[string]any{"model_type": "llama", "rope_scaling": nil, "pretraining_tp": 1,
		"eos_token_id":      []any{2.0, 7.0},
		"attention_dropout": 0.0, "rope_parameters": map[string]any{"rope_theta": 5e5, "rope_type": "default"}})
}

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct {
		architecture string
		raw          map[string]any
		key, says    string
	}{
		{"gpt-2", nil, "architecture", `did you mean "gpt2"?`},
		{GPT2, map[string]any{"n_layers": 2}, "n_layers", `did you mean "n_layer"?`},
		{Llama, map[string]any{"num_key_value_head": 2}, "num_key_value_head", `did you mean "num_key_value_heads"?`},
		{Llama, map[string]any{"quantization_config": map[string]any{}}, "quantization_config", "unknown key"},
		{GPT2, map[string]any{"n_head": 5}, "n_head", "do not divide"},
		{GPT2, map[string]any{"n_layer": 0}, "n_layer", "whole number"},
		{GPT2, map[string]any{"n_layer": 2.5}, "n_layer", "whole number"},
		{GPT2, map[string]any{"n_layer": "many"}, "n_layer", "whole number"},
		{GPT2, map[string]any{"n_embd": 96, "hidden_size": 48}, "hidden_size", "contradicts"},
		{GPT2, map[string]any{"layer_norm_epsilon": math.NaN()}, "layer_norm_epsilon", "no number"},
		{GPT2, map[string]any{"activation_function": "mish"}, "activation_function", "not supported"},
		{GPT2, map[string]any{"resid_pdrop": 0.2}, "resid_pdrop", "not supported"},
		{GPT2, map[string]any{"vocab_size": 256, "eos_token_id": 256}, "eos_token_id", "vocabulary of 256"},
		{GPT2, map[string]any{"model_type": "llama"}, "model_type", "not supported"},
		{Llama, map[string]any{"num_key_value_heads": 3}, "num_key_value_heads", "does not divide"},
		{Llama, map[string]any{"head_dim": 3}, "head_dim", "odd"},
		{Llama, map[string]any{"num_attention_heads": 2}, "head_dim", "above 1024"},
		{Llama, map[string]any{"hidden_size": 100}, "num_attention_heads", "do not divide"},
		{Llama, map[string]any{"rope_scaling": map[string]any{"type": "longrope"}}, "rope_scaling.type", "not supported"},
		{Llama, map[string]any{"rope_parameters": map[string]any{"rope_type": "ntk"}}, "rope_parameters.rope_type",
			"not supported"},
		{Llama, map[string]any{"starling_turns": []any{0, 32}}, "starling_turns", "from 1 to 32"},
		{Llama, map[string]any{"starling_turns": []any{3, 33}}, "starling_turns", "from 1 to 32"},
		{Llama, map[string]any{"tie_word_embeddings": "yes"}, "tie_word_embeddings", "neither true nor false"},
		{Llama, map[string]any{"hidden_size": 32768, "intermediate_size": 131072, "num_hidden_layers": 1024}, "config",
			"2^40"},
	} {
		_, err := Parse(tc.architecture, tc.raw)
		var bad *fields.Error
		if !errors.As(err, &bad) || bad.Key != tc.key || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s %v: got %v, want an error about %q that says %q", tc.architecture, tc.raw, err, tc.key, tc.says)
		}
	}
}

func TestJSON(t *testing.T) {
	for name, c := range tiny(t) {
		var raw map[string]any
		if err := json.Unmarshal(c.JSON(), &raw); err != nil {
			t.Fatal(err)
		}
		again, err := Parse(c.Architecture(), raw)
		if err != nil || again != c {
			t.Errorf("%s: read back as %+v, %v; want %+v", name, again, err, c)
		}
	}
	want := `{
  "activation_function": "gelu_new",
  "architectures": [
    "GPT2LMHeadModel"
  ],
  "attn_pdrop": 0,
  "bos_token_id": null,
  "embd_pdrop": 0,
  "eos_token_id": 10,
  "initializer_range": 0.02,
  "layer_norm_epsilon": 0.00001,
  "model_type": "gpt2",
  "n_embd": 12,
  "n_head": 3,
  "n_inner": 20,
  "n_layer": 2,
  "n_positions": 8,
  "resid_pdrop": 0,
  "scale_attn_weights": true,
  "tie_word_embeddings": true,
  "torch_dtype": "float32",
  "use_cache": true,
  "vocab_size": 11
}
`
	if got := string(mustParse(t, GPT2, modeltest.With(modeltest.GPT2(), "eos_token_id", 10)).JSON()); got != want {
		t.Errorf("got %s", got)
	}
}

// FuzzParse feeds arbitrary JSON: Parse either refuses it with a fields.Error, or gives a model that survives JSON.
func FuzzParse(f *testing.F) {
	for _, raw := range []map[string]any{modeltest.GPT2(), modeltest.Llama(),
		{"rope_parameters": map[string]any{"rope_theta": 1e6}}} {
		text, _ := json.Marshal(raw)
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		var raw map[string]any
		if json.Unmarshal([]byte(text), &raw) != nil {
			return
		}
		for _, architecture := range Architectures() {
			c, err := Parse(architecture, raw)
			if err != nil {
				if !errors.As(err, new(*fields.Error)) {
					t.Errorf("%T: %v", err, err)
				}
				continue
			}
			var back map[string]any
			if err := json.Unmarshal(c.JSON(), &back); err != nil {
				t.Fatal(err)
			}
			if again, err := Parse(architecture, back); err != nil || again != c {
				t.Errorf("%s read back as %+v, %v; want %+v", text, again, err, c)
			}
		}
	})
}

func describe(list []Named) []string {
	var out []string
	for _, n := range list {
		out = append(out, fmt.Sprint(n.Name, " ", n.Shape.Dims))
	}
	return out
}

func TestTensors(t *testing.T) {
	one := modeltest.With(modeltest.GPT2(), "n_layer", 1)
	oneLlama := modeltest.With(modeltest.Llama(), "num_hidden_layers", 1)
	layer := []string{
		"model.layers.0.self_attn.q_proj.weight [24 12]", "model.layers.0.self_attn.k_proj.weight [12 12]",
		"model.layers.0.self_attn.v_proj.weight [12 12]", "model.layers.0.self_attn.o_proj.weight [12 24]",
		"model.layers.0.mlp.gate_proj.weight [20 12]", "model.layers.0.mlp.up_proj.weight [20 12]",
		"model.layers.0.mlp.down_proj.weight [12 20]", "model.layers.0.input_layernorm.weight [12]",
		"model.layers.0.post_attention_layernorm.weight [12]", "model.norm.weight [12]",
	}
	embed := []string{"model.embed_tokens.weight [11 12]"}
	for _, tc := range []struct {
		name string
		c    Config
		want []string
	}{
		{"gpt2", mustParse(t, GPT2, one), []string{
			"transformer.wte.weight [11 12]", "transformer.wpe.weight [8 12]",
			"transformer.h.0.ln_1.weight [12]", "transformer.h.0.ln_1.bias [12]",
			"transformer.h.0.attn.c_attn.weight [12 36]", "transformer.h.0.attn.c_attn.bias [36]",
			"transformer.h.0.attn.c_proj.weight [12 12]", "transformer.h.0.attn.c_proj.bias [12]",
			"transformer.h.0.ln_2.weight [12]", "transformer.h.0.ln_2.bias [12]",
			"transformer.h.0.mlp.c_fc.weight [12 20]", "transformer.h.0.mlp.c_fc.bias [20]",
			"transformer.h.0.mlp.c_proj.weight [20 12]", "transformer.h.0.mlp.c_proj.bias [12]",
			"transformer.ln_f.weight [12]", "transformer.ln_f.bias [12]",
		}},
		{"llama", mustParse(t, Llama, oneLlama), slices.Concat(embed, layer, []string{"lm_head.weight [11 12]"})},
		{"llama-tied", mustParse(t, Llama, modeltest.With(oneLlama, "tie_word_embeddings", true)),
			slices.Concat(embed, layer)},
	} {
		if got := describe(tc.c.Tensors()); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q\nwant %q", tc.name, got, tc.want)
		}
	}
}

func TestInit(t *testing.T) {
	c := mustParse(t, GPT2, map[string]any{"vocab_size": 300, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 2})
	first, again, other := c.Init(7), c.Init(7), c.Init(8)
	if len(first) != len(c.Tensors()) {
		t.Fatalf("%d tensors, want %d", len(first), len(c.Tensors()))
	}
	for _, n := range c.Tensors() {
		x := first[n.Name]
		if !x.Shape.Equal(n.Shape) || x.Shape.DType != tensor.Float32 {
			t.Errorf("%s: %v, want %v", n.Name, x.Shape, n.Shape)
		}
		if x.Root() != again[n.Name].Root() {
			t.Errorf("%s differs between two calls", n.Name)
		}
		mean, std := moments(x.F32())
		switch {
		case strings.Contains(n.Name, ".ln_") && strings.HasSuffix(n.Name, ".weight"):
			checkNear(t, n.Name+" mean", mean, 1, 0)
		case strings.HasSuffix(n.Name, ".bias"):
			checkNear(t, n.Name+" mean", mean, 0, 0)
		case strings.HasSuffix(n.Name, "c_proj.weight"):
			checkNear(t, n.Name+" std", std, 0.01, 0.0006)
		default:
			checkNear(t, n.Name+" std", std, 0.02, 0.001)
			if x.Root() == other[n.Name].Root() {
				t.Errorf("%s is the same for two seeds", n.Name)
			}
		}
	}
}

func moments(x []float32) (mean, std float64) {
	for _, v := range x {
		mean += float64(v) / float64(len(x))
	}
	for _, v := range x {
		std += (float64(v) - mean) * (float64(v) - mean) / float64(len(x))
	}
	return mean, math.Sqrt(std)
}

func checkNear(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s: got %g, want %g within %g", what, got, want, tolerance)
	}
}
