package rekey_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/generate"
	"github.com/starling-network/starling/compute/generate/section"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/rekey"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// small is a model of an architecture whose gains and biases are not those of an initial model.
func small(t *testing.T, name string, more map[string]any) (architecture.Config, map[string]*tensor.Tensor) {
	t.Helper()
	keys := map[string]any{"num_hidden_layers": 2, "hidden_size": 24, "num_attention_heads": 4, "num_key_value_heads": 2,
		"head_dim": 6, "intermediate_size": 40, "vocab_size": 61, "max_position_embeddings": 64, "initializer_range": 0.2}
	for k, v := range more {
		keys[k] = v
	}
	c, err := architecture.Parse(name, keys)
	if err != nil {
		t.Fatal(err)
	}
	tensors := c.Init(3)
	for i, n := range c.Tensors() {
		noise := make([]float32, n.Shape.Elements())
		philox.NormalTo(noise, 4, uint64(i))
		for j := range noise {
			tensors[n.Name].F32()[j] += 0.1 * noise[j]
		}
	}
	return c, tensors
}

// logits are those after each of some tokens.
func logits(t *testing.T, c architecture.Config, tensors map[string]*tensor.Tensor) (all []float32) {
	t.Helper()
	b := generate.NewBatch(c, 1)
	if err := b.SetWeights(tensors); err != nil {
		t.Fatal(err)
	}
	r := generate.NewReader(b)
	for i := range 20 {
		row, err := r.Read([]int32{int32(i * 17 % 61)})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, row...)
	}
	return all
}

// difference is the largest of two lists.
func difference(a, b []float32) (most float64) {
	for i := range a {
		most = max(most, math.Abs(float64(a[i])-float64(b[i])))
	}
	return most
}

func key(e byte) rekey.Source { return rand.NewChaCha8([32]byte{e}) }

// A key leaves the function of each model that is taken, over many of them in a row.
func TestFunctionStays(t *testing.T) {
	positions := map[string]any{"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16.0}
	for _, x := range []struct {
		name string
		more map[string]any
	}{
		{architecture.Llama, map[string]any{"tie_word_embeddings": true}},
		{architecture.Llama, map[string]any{"attention_bias": true, "mlp_bias": true, "hidden_act": "relu"}},
		{architecture.Llama, map[string]any{"num_key_value_heads": 1, "rope_scaling": positions}},
		{architecture.Mistral, map[string]any{"num_key_value_heads": 4, "sliding_window": 4}},
		{architecture.Qwen2, map[string]any{"tie_word_embeddings": true}},
		{architecture.Qwen3, map[string]any{"attention_bias": true}},
	} {
		name, more := x.name, x.more
		c, tensors := small(t, name, more)
		want := logits(t, c, tensors)
		for e := range 8 {
			var err error
			if c, tensors, err = rekey.Apply(c, tensors, []int{0, 1}[e%3/2:], key(byte(e))); err != nil {
				t.Fatal(err)
			}
		}
		if d := difference(logits(t, c, tensors), want); d > 1e-4 {
			t.Errorf("%s: logits differ by %g", name, d)
		}
		if c.Tied {
			t.Errorf("%s: the gains of the last norm are in no output layer", name)
		}
	}
}

// Layers of two keys do not fit together, and each tensor that is a matrix differs in nearly all elements.
func TestLayersOfTwoKeysDoNotFit(t *testing.T) {
	c, tensors := small(t, architecture.Llama, nil)
	want := logits(t, c, tensors)
	next, one, err := rekey.Apply(c, tensors, []int{0, 1}, key(1))
	if err != nil {
		t.Fatal(err)
	}
	_, two, err := rekey.Apply(c, tensors, []int{0, 1}, key(2))
	if err != nil {
		t.Fatal(err)
	}
	l, err := section.Divide(next, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range l.Tensors(2) {
		same := 0
		for i, x := range one[n.Name].F32() {
			if x == two[n.Name].F32()[i] {
				same++
			}
		}
		if len(n.Shape.Dims) == 2 && same > len(one[n.Name].F32())/100 {
			t.Errorf("%s: %d of %d elements are the same", n.Name, same, len(one[n.Name].F32()))
		}
		one[n.Name] = two[n.Name]
	}
	if d := difference(logits(t, next, one), want); d < 1 {
		t.Errorf("the logits of a model of two keys differ by %g", d)
	}
}

func TestModelsWithoutTransforms(t *testing.T) {
	for _, name := range []string{architecture.Gemma, architecture.Gemma2} {
		c, tensors := small(t, name, nil)
		if _, _, err := rekey.Apply(c, tensors, []int{0, 1}, key(1)); !errors.Is(err, rekey.ErrModel) {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, tensors := small(t, architecture.Llama, nil)
	if _, _, err := rekey.Apply(c, tensors, []int{2}, key(1)); !errors.Is(err, rekey.ErrModel) {
		t.Errorf("a layer that there is not: %v", err)
	}
	if _, _, err := rekey.Apply(c, nil, nil, key(1)); !errors.Is(err, rekey.ErrModel) {
		t.Error(err)
	}
}
