package vectors

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/internal/oracle"
	"github.com/starling-network/starling/node/encoder"
)

// trained is the folder of an encoder of texts of up to 12 tokens, with its weights.
func trained(t *testing.T) (embed.Network, oracle.Model, fstest.MapFS) {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama, map[string]any{"vocab_size": 256, "hidden_size": 8,
		"intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 20,
		"initializer_range": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	tok := tokenizer.Bytes()
	n, err := embed.New(c, 12, tok.VocabSize())
	if err != nil {
		t.Fatal(err)
	}
	weights := n.Begin(nil, 7)
	var file bytes.Buffer
	if err := safetensors.EncodeAs(&file, slices.Sorted(maps.Keys(weights)), weights, nil, nil); err != nil {
		t.Fatal(err)
	}
	config, err := encoder.TokenizerConfig(n, n.Length(), tok, "")
	if err != nil {
		t.Fatal(err)
	}
	return n, oracle.Model{Config: n.Language(), Weights: weights, Both: true},
		fstest.MapFS{"config.json": {Data: n.JSON()}, "model.safetensors": {Data: file.Bytes()},
			"tokenizer.json": {Data: tok.JSON()}, encoder.TokenizerFile: {Data: config}}
}

// The vector of a text is the mean of its hidden states, cut off at the length of texts.
func TestEncode(t *testing.T) {
	n, plain, dir := trained(t)
	e, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"so it rains", "a", "sun!", "the longest of them is cut off", "the longest "}
	all, err := e.Encode(t.Context(), texts, 2)
	if err != nil || len(all) != len(texts) {
		t.Fatalf("%d of %d texts: %v", len(all), len(texts), err)
	}
	if !slices.Equal(all[3], all[4]) || slices.Equal(all[0], all[1]) {
		t.Errorf("%v", all)
	}
	for i, text := range texts {
		var tokens []int32
		for _, id := range tokenizer.Bytes().EncodeText(text) {
			tokens = append(tokens, int32(id))
		}
		mean, square := make([]float32, n.Width()), 0.0
		for _, state := range plain.Hidden(tokens[:min(len(tokens), 12)]) {
			for k, x := range state {
				mean[k] += float32(x)
			}
		}
		square = Cosine(mean, mean)
		if cosine := Cosine(mean, all[i]) / math.Sqrt(square); math.Abs(cosine-1) > 1e-6 {
			t.Errorf("%q: the cosine with the mean is %v", text, cosine)
		}
	}
	alone, err := e.Encode(t.Context(), texts[2:3], 1)
	if err != nil || !slices.Equal(alone[0], all[2]) {
		t.Errorf("other bits alone: %v", err)
	}
	// Without a length of texts, they are as long as the model has positions.
	delete(dir, encoder.TokenizerFile)
	if e, err = Open(dir); err != nil || e.network.Length() != 20 {
		t.Errorf("%d tokens, %v", e.network.Length(), err)
	}
}

func TestOtherFoldersAreRefused(t *testing.T) {
	for name, change := range map[string]func(d fstest.MapFS){
		"no config":    func(d fstest.MapFS) { delete(d, "config.json") },
		"no weights":   func(d fstest.MapFS) { delete(d, "model.safetensors") },
		"no tokenizer": func(d fstest.MapFS) { delete(d, "tokenizer.json") },
		"a language model": func(d fstest.MapFS) {
			text := strings.Replace(string(d["config.json"].Data), `"is_causal": false`, `"is_causal": true`, 1)
			d["config.json"] = &fstest.MapFile{Data: []byte(text)}
		},
	} {
		_, _, dir := trained(t)
		change(dir)
		if _, err := Open(dir); !errors.Is(err, ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
