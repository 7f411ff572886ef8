package pretrained

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/safetensors"
	"github.com/starling-network/starling/compute/toploc"
	"github.com/starling-network/starling/internal/inputs"
	"github.com/starling-network/starling/internal/torchtest"
)

// proven is a model with enough activations for a proof of one token, and answers.
func proven(t *testing.T) (*Model, []Answer) {
	t.Helper()
	c, err := architecture.Parse(architecture.GPT2, map[string]any{"vocab_size": 256, "n_positions": 96, "n_embd": 128,
		"n_layer": 2, "n_head": 4, "initializer_range": 0.1})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	answers := make([]Answer, 8)
	for i := range answers {
		text := make([]int32, 2+r.IntN(94))
		for k := range text {
			text[k] = int32(r.IntN(256))
		}
		n := 1 + r.IntN(len(text)-1)
		answers[i] = Answer{Prompt: text[:n], Answer: text[n:]}
	}
	return &Model{Config: c, Tensors: c.Init(2), Tokenizer: tokenizer.Bytes()}, answers
}

func TestProofs(t *testing.T) {
	m, answers := proven(t)
	p, again := NewProver(m, 1), NewProver(m, 2)
	other := NewProver(&Model{Config: m.Config, Tensors: m.Config.Init(3), Tokenizer: m.Tokenizer}, 1)
	for i, a := range answers {
		var err error
		if a.Proofs, err = p.Prove(a); err != nil {
			t.Fatal(err)
		}
		for _, made := range []toploc.Precision{toploc.BFloat16, toploc.Float32} {
			if v, err := again.Check(a, made); err != nil || !v.Holds || v.Worst != (toploc.Difference{}) {
				t.Errorf("answer %d: %+v, %v", i, v, err)
			}
			if v, err := other.Check(a, made); err != nil || v.Holds {
				t.Errorf("answer %d, another model: %+v, %v", i, v, err)
			}
		}
		first := slices.Clone(a.Prompt)
		first[0] ^= 1
		for name, forged := range map[string]Answer{
			"another prompt": {first, a.Answer, a.Proofs}, "no proofs": {a.Prompt, a.Answer, nil},
			"proofs of zeros": {a.Prompt, a.Answer, slices.Repeat([][]byte{make([]byte, toploc.Bytes)}, len(a.Proofs))},
		} {
			if v, err := p.Check(forged, toploc.Float32); err != nil || v.Holds || v.Why == "" {
				t.Errorf("answer %d, %s: %+v, %v", i, name, v, err)
			}
		}
	}
	for name, a := range map[string]Answer{"empty": {Prompt: []int32{1}}, "no prompt": {Answer: []int32{1}},
		"too long": {Prompt: make([]int32, 96), Answer: []int32{1}}, "no token": {Prompt: []int32{256}, Answer: []int32{1}}} {
		if _, err := p.Check(a, toploc.BFloat16); !errors.Is(err, ErrAnswer) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "have PyTorch make proofs, as .ci/run does")

// Proofs of PyTorch hold, in float32 and in bfloat16, and those in bfloat16 are not taken for float32.
func TestProofsOfPyTorch(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	python := torchtest.Python(t)
	m, answers := proven(t)
	dir := t.TempDir()
	var weights bytes.Buffer
	config, err := json.Marshal(map[string]int{"n_layer": 2, "n_head": 4})
	err = errors.Join(err, safetensors.EncodeAs(&weights, slices.Sorted(maps.Keys(m.Tensors)), m.Tensors, nil, nil),
		os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600))
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "model.safetensors"), weights.Bytes(), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, a := range answers {
		if err := json.NewEncoder(&lines).Encode(a); err != nil {
			t.Fatal(err)
		}
	}
	p := NewProver(m, 1)
	for _, c := range []struct {
		made  string
		holds map[toploc.Precision]bool
	}{
		{"float32", map[toploc.Precision]bool{toploc.BFloat16: true, toploc.Float32: true}},
		{"bfloat16", map[toploc.Precision]bool{toploc.BFloat16: true, toploc.Float32: false}},
	} {
		inputs.Of(t, "testdata", "../../sdk/python")
		cmd := exec.Command(python, "testdata/prove.py", dir, c.made, "../../sdk/python")
		cmd.Stdin = bytes.NewReader(lines.Bytes())
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		made := json.NewDecoder(bytes.NewReader(out))
		for i := range answers {
			var a Answer
			if err := made.Decode(&a); err != nil {
				t.Fatal(err)
			}
			for precision, holds := range c.holds {
				if v, err := p.Check(a, precision); err != nil || v.Holds != holds {
					t.Errorf("answer %d in %s, checked as %s: %+v, %v", i, c.made, precision, v, err)
				}
			}
		}
	}
}
