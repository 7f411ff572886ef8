package generate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

const context = 150 // more than two sizes of memory and two pieces

// models are small, with weights far from the initial values, so that every layer matters to the logits.
func models(t *testing.T) map[string]architecture.Config {
	parse := func(modelType string, keys map[string]any) architecture.Config {
		c, err := architecture.Parse(modelType, keys)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	return map[string]architecture.Config{
		"gpt2": parse(architecture.GPT2, map[string]any{"vocab_size": 31, "n_positions": context, "n_embd": 24, "n_layer": 2,
			"n_head": 3}),
		"llama": parse(architecture.Llama, map[string]any{"vocab_size": 31, "max_position_embeddings": context,
			"hidden_size":       24,
			"intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 2, "head_dim": 4}),
	}
}

func weights(c architecture.Config) map[string]*tensor.Tensor {
	all := c.Init(1)
	for i, n := range c.Tensors() {
		noise := make([]float32, n.Shape.Elements())
		philox.NormalTo(noise, 2, uint64(i))
		for j := range noise {
			all[n.Name].F32()[j] += 0.2 * noise[j]
		}
	}
	return all
}

func reader(t *testing.T, c architecture.Config, threads int) *Reader {
	t.Helper()
	return readerOf(t, c, threads, weights(c))
}

func readerOf(t *testing.T, c architecture.Config, threads int, weights map[string]*tensor.Tensor) *Reader {
	t.Helper()
	b := NewBatch(c, threads)
	if err := b.SetWeights(weights); err != nil {
		t.Fatal(err)
	}
	return NewReader(b)
}

// whole computes the logits that follow every token of a sequence, at once and without remembering anything.
func whole(t *testing.T, c architecture.Config, ids []int32) func(i int) []float32 {
	t.Helper()
	p, err := model.Logits(c, 1, len(ids))
	if err != nil {
		t.Fatal(err)
	}
	x, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(ids, 1, len(ids))}
	for name, w := range weights(c) {
		in["p/"+name] = w
	}
	out, err := x.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return func(i int) []float32 { return out["logits"].F32()[i*c.VocabSize():][:c.VocabSize()] }
}

func checkClose(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); d > 1e-4*(1+math.Abs(float64(want[i]))) {
			t.Fatalf("%s: logit %d is %v, without memory %v", what, i, got[i], want[i])
		}
	}
}

// TestTokensEqualThoseWithoutMemory continues prompts of all kinds of lengths to the end of the context, greedily.
func TestTokensEqualThoseWithoutMemory(t *testing.T) {
	for name, c := range models(t) {
		r := reader(t, c, 1)
		for _, prompt := range []int{1, 2, piece - 1, piece, piece + 1, 2*piece + 5, context} {
			r.Reset()
			ids := make([]int32, prompt)
			random := philox.New(uint64(prompt), 0)
			for i := range ids {
				ids[i] = int32(random.Uint64n(uint64(c.VocabSize())))
			}
			var logits [][]float32 // after each token from the last one of the prompt on
			for next := ids; ; next = ids[len(ids)-1:] {
				last, err := r.Read(next)
				if err != nil {
					t.Fatal(err)
				}
				logits = append(logits, slices.Clone(last))
				if len(ids) == context {
					break
				}
				ids = append(ids, Sampling{}.Pick(last, 0))
			}
			at := whole(t, c, ids)
			for i, got := range logits {
				n := prompt + i
				checkClose(t, fmt.Sprintf("%s after %d tokens", name, n), got, at(n-1))
				if want := (Sampling{}).Pick(at(n-1), 0); n < context && ids[n] != want {
					t.Fatalf("%s: token %d is %d, without memory %d", name, n, ids[n], want)
				}
			}
		}
	}
}

// TestThreadsAndHistoryDoNotShow reads the same tokens on other threads, and after another sequence.
func TestThreadsAndHistoryDoNotShow(t *testing.T) {
	for name, c := range models(t) {
		read := func(r *Reader) (all []float32) {
			r.Reset()
			for _, next := range [][]int32{{1, 2, 3}, {4}, {5}, make([]int32, 70), {6}} {
				logits, err := r.Read(next)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, logits...)
			}
			return all
		}
		used := reader(t, c, 3)
		if _, err := used.Read(slices.Repeat([]int32{7}, 140)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(read(used), read(reader(t, c, 1))) {
			t.Errorf("%s: a used reader with three threads gives other logits", name)
		}
	}
}

func TestReadRefusals(t *testing.T) {
	c := models(t)["gpt2"]
	r := reader(t, c, 1)
	for want, tokens := range map[error][]int32{ErrContext: make([]int32, context+1), ErrToken: {31}} {
		if _, err := r.Read(tokens); !errors.Is(err, want) || r.Len() != 0 {
			t.Errorf("%v: %v, %d tokens read", want, err, r.Len())
		}
	}
	if _, err := r.Read([]int32{-1}); !errors.Is(err, ErrToken) {
		t.Error(err)
	}
	if _, err := r.Read(nil); !errors.Is(err, ErrToken) {
		t.Error(err)
	}
	if _, err := NewReader(NewBatch(c, 1)).Read([]int32{1}); !errors.Is(err, ErrWeights) {
		t.Error(err)
	}
	bad := weights(c)
	bad["transformer.ln_f.bias"].F32()[3] = float32(math.NaN())
	if _, err := readerOf(t, c, 1, bad).Read([]int32{1}); !errors.Is(err, ErrNumbers) {
		t.Error(err)
	}
	delete(bad, "transformer.ln_f.bias")
	if err := NewBatch(c, 1).SetWeights(bad); !errors.Is(err, ErrWeights) {
		t.Error(err)
	}
}
