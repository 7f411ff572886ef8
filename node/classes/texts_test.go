package classes

import (
	"bytes"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/encoder"
)

// reading is the folder of a classifier of texts of up to 12 tokens, with its weights.
func reading(t *testing.T) (textclass.Network, map[string]*tensor.Tensor, fstest.MapFS) {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama, map[string]any{"vocab_size": 256, "hidden_size": 8,
		"intermediate_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "max_position_embeddings": 20,
		"initializer_range": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	tok := tokenizer.Bytes()
	n, err := textclass.New(c, []string{"bad", "fair", "good"}, 12, tok.VocabSize())
	if err != nil {
		t.Fatal(err)
	}
	weights := n.Begin(nil, 7)
	var file bytes.Buffer
	if err := safetensors.EncodeAs(&file, slices.Sorted(maps.Keys(weights)), weights, nil, nil); err != nil {
		t.Fatal(err)
	}
	config, err := encoder.TokenizerConfig(n, n.Example(), tok, "")
	if err != nil {
		t.Fatal(err)
	}
	return n, weights, fstest.MapFS{"config.json": {Data: n.JSON()}, "model.safetensors": {Data: file.Bytes()},
		"tokenizer.json": {Data: tok.JSON()}, encoder.TokenizerFile: {Data: config}}
}

// The probabilities of a text are those whose logarithm is the loss of an evaluation, where it is filled up to the
// length of texts, or cut off at it.
func TestTextsHaveTheProbabilitiesOfTheLoss(t *testing.T) {
	n, weights, dir := reading(t)
	m, err := OpenTexts(dir)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{"so it rains", "a", "sun!", "the longest of them is cut off", "the longest ", ""}
	all, err := m.Classify(t.Context(), texts, 2)
	if err != nil || len(all) != len(texts) || !slices.Equal(m.Labels(), n.Labels()) {
		t.Fatalf("%d of %d texts: %v", len(all), len(texts), err)
	}
	if !slices.Equal(all[3], all[4]) || slices.Equal(all[0], all[1]) {
		t.Errorf("%v", all)
	}
	task, err := model.Classify(n, model.Batch{Sequences: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := task.Eval()
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i, text := range texts {
		for class, got := range all[i] {
			in := map[string]*tensor.Tensor{"tokens": tensor.New(tensor.Make(tensor.Int32, 1, n.Example()+2))}
			row := in["tokens"].I32()
			row[0] = int32(class)
			for k, id := range n.Row(tokenizer.Bytes().EncodeText(text)) {
				row[1+k] = int32(id)
			}
			for name, w := range weights {
				in[train.Param+name] = w
			}
			out, err := x.Run(in)
			if err != nil {
				t.Fatal(err)
			}
			if want := math.Exp(-float64(out["loss"].F32()[0])); math.Abs(got-want) > 1e-5 {
				t.Errorf("text %d is of class %d with %v, wanted %v", i, class, got, want)
			}
		}
	}
	// Without a length of texts, they are as long as the model has positions.
	delete(dir, encoder.TokenizerFile)
	if m, err = OpenTexts(dir); err != nil || m.network.Example() != 20 {
		t.Errorf("%d tokens, %v", m.network.Example(), err)
	}
}

func TestOtherFoldersOfTextsAreRefused(t *testing.T) {
	small := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for name, change := range map[string]func(d fstest.MapFS){
		"no config":            func(d fstest.MapFS) { delete(d, "config.json") },
		"no weights":           func(d fstest.MapFS) { delete(d, "model.safetensors") },
		"no tokenizer":         func(d fstest.MapFS) { delete(d, "tokenizer.json") },
		"a broken tokenizer":   func(d fstest.MapFS) { d["tokenizer.json"] = small("{") },
		"a broken length":      func(d fstest.MapFS) { d[encoder.TokenizerFile] = small("{") },
		"a model of images":    func(d fstest.MapFS) { d["config.json"] = small(`{"model_type": "mlp"}`) },
		"a language model":     func(d fstest.MapFS) { d["config.json"] = small(`{"model_type": "llama"}`) },
		"more classes":         replaced(`"2": "good"`, `"2": "good", "3": "best"`),
		"a smaller vocabulary": replaced(`"vocab_size": 256`, `"vocab_size": 255`),
	} {
		_, _, dir := reading(t)
		change(dir)
		if _, err := OpenTexts(dir); !errors.Is(err, ErrTextModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// replaced changes the config.json of a folder.
func replaced(old, now string) func(fstest.MapFS) {
	return func(d fstest.MapFS) {
		d["config.json"] = &fstest.MapFile{Data: []byte(strings.Replace(string(d["config.json"].Data), old, now, 1))}
	}
}
