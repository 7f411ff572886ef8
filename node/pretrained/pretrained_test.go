package pretrained

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
)

func small(t *testing.T) *Model {
	t.Helper()
	return drawn(t, 1, 2)
}

// drawn is a model of some layers with drawn weights.
func drawn(t *testing.T, layers int, seed uint64) *Model {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": 256, "n_positions": 12, "n_embd": 8,
		"n_layer": layers,
		"n_head":  2, "initializer_range": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	return &Model{Config: c, Tensors: c.Init(seed), Tokenizer: tokenizer.Bytes()}
}

// TestEvaluateIsTheMeanOfThePredictions reads a text token by token, and restarts the context at each window, with one
// model and with a mixture of three.
func TestEvaluateIsTheMeanOfThePredictions(t *testing.T) {
	evaluateByTokens(t, Mixture{{Model: small(t), Prior: 1}})
	evaluateByTokens(t, Mixture{{Model: small(t), Prior: 0.5}, {Model: drawn(t, 2, 7), Prior: 0.2},
		{Model: drawn(t, 1, 3), Prior: 0.1}})
}

func evaluateByTokens(t *testing.T, m Mixture) {
	t.Helper()
	const text = "héllo, this is a text of some length"
	ids := m[0].Tokenizer.Encode(text)
	for _, window := range []int{1, 5, 12, 0} {
		got, err := m.Evaluate(t.Context(), text, window, 1)
		if err != nil {
			t.Fatal(err)
		}
		length := window
		if length == 0 {
			length = m.Context()
		}
		reads, err := m.Reads(1)
		if err != nil {
			t.Fatal(err)
		}
		r := generate.NewReader(reads)
		want := 0.0
		for i := range len(ids) - 1 {
			if i%length == 0 {
				r.Reset()
			}
			logits, err := r.Read([]int32{int32(ids[i])})
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, x := range logits {
				sum += math.Exp(float64(x))
			}
			want += math.Log(sum) - float64(logits[ids[i+1]])
		}
		bytes := len(text) - 1
		if n := float64(len(ids) - 1); got.Tokens != len(ids)-1 || got.Bytes != bytes || got.Window != length ||
			math.Abs(got.Loss-want/n) > 1e-4 ||
			math.Abs(got.Perplexity-math.Exp(got.Loss)) > 1e-9 || math.Abs(got.BitsPerByte-want/math.Ln2/float64(bytes)) > 1e-4 {
			t.Errorf("window %d: %+v; the loss is %v", window, got, want/n)
		}
	}
}

func TestEvaluateRefusals(t *testing.T) {
	m := Mixture{{Model: small(t), Prior: 1}}
	if _, err := m.Evaluate(t.Context(), "a", 0, 1); !errors.Is(err, ErrText) {
		t.Error(err)
	}
	for _, window := range []int{-1, 13} {
		if _, err := m.Evaluate(t.Context(), "abc", window, 1); !errors.Is(err, model.ErrStep) {
			t.Errorf("window %d: %v", window, err)
		}
	}
}

func TestLoadNamesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	check := func(say string) {
		t.Helper()
		if _, err := Load(dir); !errors.Is(err, ErrModel) || !strings.Contains(err.Error(), say) {
			t.Errorf("%v does not say %s", err, say)
		}
	}
	check("tokenizer.json")
	if err := os.WriteFile(filepath.Join(dir, "tokenizer.json"), tokenizer.Bytes().JSON(), 0o644); err != nil {
		t.Fatal(err)
	}
	check("config.json")
}

func TestEnds(t *testing.T) {
	m := small(t)
	if ids := Ends(m.Config, m.Tokenizer); len(ids) > 0 {
		t.Errorf("nothing ends a text, and %d does", ids)
	}
	tok, err := tokenizer.TrainBPE(func(yield func(string) bool) { yield("some text") }, 300)
	if err != nil {
		t.Fatal(err)
	}
	if id, ok := tok.EndOfText(); ok && !slices.Equal(Ends(m.Config, tok), []int32{int32(id)}) {
		t.Error("the tokenizer's end does not count")
	}
}

// A model may end a text with several tokens, and the settings of generation count before config.json.
func TestReadEnds(t *testing.T) {
	for name, c := range map[string]struct {
		config, generation string
		want               []int32
		fails              bool
	}{
		"one":        {config: `{"eos_token_id": 3}`, want: []int32{3}},
		"all":        {config: `{"eos_token_id": [3, 4]}`, want: []int32{3, 4}},
		"generation": {config: `{"eos_token_id": 3}`, generation: `{"eos_token_id": [5, 6]}`, want: []int32{5, 6}},
		"silent":     {config: `{"eos_token_id": [3]}`, generation: `{"eos_token_id": null}`, want: []int32{3}},
		"none":       {config: `{}`},
		"unknown id": {config: `{"eos_token_id": [3, 9]}`, fails: true},
		"a text":     {config: `{"eos_token_id": "</s>"}`, fails: true},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"config.json": c.config, "generation_config.json": c.generation} {
			if text == "" {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := readEnds(dir, 8); !slices.Equal(got, c.want) || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
