package node

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/textgen"
)

const modelContext = 24

// modelFolder writes a tiny Llama with random weights, of which change may alter the files.
func modelFolder(t *testing.T, keys map[string]any,
	change func(weights map[string]*tensor.Tensor, files map[string][]byte)) string {
	t.Helper()
	raw := map[string]any{"vocab_size": 256, "max_position_embeddings": modelContext, "hidden_size": 16,
		"intermediate_size": 24,
		"num_hidden_layers": 1, "num_attention_heads": 2, "initializer_range": 0.5}
	for k, v := range keys {
		raw[k] = v
	}
	c, err := architecture.Parse(architecture.Llama, raw)
	if err != nil {
		t.Fatal(err)
	}
	weights, files := c.Init(3), map[string][]byte{prepare.FileConfig: c.JSON(),
		prepare.FileTokenizer: tokenizer.Bytes().JSON()}
	if change != nil {
		change(weights, files)
	}
	var names []string
	for _, n := range c.Tensors() {
		if weights[n.Name] != nil {
			names = append(names, n.Name)
		}
	}
	var b bytes.Buffer
	if err := safetensors.EncodeAs(&b, names, weights, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, ok := files[prepare.FileModel]; !ok {
		files[prepare.FileModel] = b.Bytes()
	}
	dir := t.TempDir()
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func generateText(t *testing.T, g *textgen.Generator, opt textgen.Options) (string, *textgen.Generated) {
	t.Helper()
	var text strings.Builder
	made, err := g.Generate(t.Context(), opt, func(s string) error { text.WriteString(s); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return text.String(), made
}

func TestGenerate(t *testing.T) {
	g, err := textgen.OpenModel(modelFolder(t, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	opt := textgen.Options{Prompt: "hello", Tokens: 3 * modelContext,
		Sampling: generate.Sampling{Temperature: 1, TopK: 50, TopP: 0.9, Seed: 7}}
	text, made := generateText(t, g, opt)
	if made.Tokens != opt.Tokens || made.PromptTokens != 5 || made.Finish != textgen.FinishLength ||
		len(text) != opt.Tokens {
		t.Errorf("%+v with %d bytes", made, len(text))
	}
	if again, _ := generateText(t, g, opt); again != text {
		t.Errorf("the same options gave %q, then %q", text, again)
	}
	short := opt
	short.Tokens = 10
	if begin, _ := generateText(t, g, short); !strings.HasPrefix(text, begin) {
		t.Errorf("10 tokens are %q, the first of %d %q", begin, opt.Tokens, text)
	}
	opt.Sampling.Seed++
	if other, _ := generateText(t, g, opt); other == text {
		t.Error("another seed gave the same text")
	}
}

// TestGenerateEnds makes the token that is drawn third the one that ends a text.
func TestGenerateEnds(t *testing.T) {
	g, err := textgen.OpenModel(modelFolder(t, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	opt := textgen.Options{Prompt: "a", Tokens: 12}
	text, _ := generateText(t, g, opt)
	end := text[2]
	if i := strings.IndexByte(text, end); i < 2 {
		t.Fatalf("the third byte of %q occurs before", text)
	}
	if g, err = textgen.OpenModel(modelFolder(t, map[string]any{"eos_token_id": int(end)}, nil)); err != nil {
		t.Fatal(err)
	}
	if got, made := generateText(t, g, opt); got != text[:2] || made.Finish != textgen.FinishEnd || made.Tokens != 2 {
		t.Errorf("%q, %+v; want %q", got, made, text[:2])
	}
	opt.IgnoreEnd = true
	if got, made := generateText(t, g, opt); got != text || made.Finish != textgen.FinishLength {
		t.Errorf("ignoring the end: %q, %+v; want %q", got, made, text)
	}
}

func TestGenerateRefusesLongPrompts(t *testing.T) {
	g, err := textgen.OpenModel(modelFolder(t, nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	emit := func(string) error { t.Error("text was made"); return nil }
	_, err = g.Generate(t.Context(), textgen.Options{Prompt: strings.Repeat("x", modelContext+1), Tokens: 1}, emit)
	if !errors.Is(err, generate.ErrContext) {
		t.Error(err)
	}
	if _, made := generateText(t, g, textgen.Options{Prompt: strings.Repeat("x", modelContext),
		Tokens: 2}); made.Tokens != 2 {
		t.Errorf("%+v after a prompt as long as the context", made)
	}
	if _, made := generateText(t, g, textgen.Options{Tokens: 2}); made.Tokens != 2 || made.PromptTokens != 1 {
		t.Errorf("%+v after an empty prompt", made)
	}
}

// TestOpenModelNamesWhatIsWrong breaks one file at a time.
func TestOpenModelNamesWhatIsWrong(t *testing.T) {
	type files = map[string][]byte
	type weights = map[string]*tensor.Tensor
	const gain = "model.norm.weight"
	nan := func(bits uint32) func(w weights, f files) {
		return func(w weights, _ files) { tensor.As[uint32](w[gain].Bytes())[5] = bits }
	}
	for name, c := range map[string]struct {
		change func(w weights, f files)
		say    []string
		keys   map[string]any
	}{
		"large tokenizer": {nil, []string{prepare.FileTokenizer, "256", "255"}, map[string]any{"vocab_size": 255}},
		"no config": {func(_ weights, f files) { f[prepare.FileConfig] = []byte("{") }, []string{prepare.FileConfig},
			nil},
		"unknown model": {func(_ weights, f files) { f[prepare.FileConfig] = []byte(`{"model_type":"bert"}`) },
			[]string{prepare.FileConfig, "bert"}, nil},
		"bad tokenizer": {func(_ weights, f files) { f[prepare.FileTokenizer] = []byte(`{"model":{"type":"Unigram"}}`) },
			[]string{prepare.FileTokenizer}, nil},
		"truncated": {func(_ weights, f files) { f[prepare.FileModel] = []byte("\x10\x00\x00\x00\x00\x00\x00\x00{") },
			[]string{prepare.FileModel}, nil},
		"huge header": {func(_ weights, f files) { f[prepare.FileModel] = bytes.Repeat([]byte{255}, 64) },
			[]string{prepare.FileModel}, nil},
		"missing tensor": {func(w weights, _ files) { delete(w, gain) }, []string{prepare.FileModel, gain}, nil},
		"wrong shape": {func(w weights, _ files) { w[gain] = tensor.New(tensor.Make(tensor.Float32, 15)) },
			[]string{prepare.FileModel, gain, "15", "16"}, nil},
		"NaN":      {nan(0x7fc00000), []string{prepare.FileModel, gain, "5"}, nil},
		"infinity": {nan(0xff800000), []string{prepare.FileModel, gain, "5", "-Inf"}, nil},
	} {
		_, err := textgen.OpenModel(modelFolder(t, c.keys, c.change))
		if !errors.Is(err, textgen.ErrModel) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range c.say {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %q does not say %q", name, err, s)
			}
		}
	}
}
