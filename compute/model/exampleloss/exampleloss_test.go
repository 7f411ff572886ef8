package exampleloss

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/modeltest"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
)

// The loss of an example is that of an evaluation of it alone, and the same bits among other examples, in batches of
// other sizes and with other numbers of threads.
func TestMeasure(t *testing.T) {
	for name, raw := range map[string]map[string]any{architecture.GPT2: modeltest.GPT2(),
		architecture.Llama: modeltest.Llama()} {
		c, err := architecture.Parse(name, raw)
		if err != nil {
			t.Fatal(err)
		}
		tensors := c.Init(7)
		examples := [][]uint32{{1, 2, 3}, {4, 5}, {6, 7, 8, 9, 10, 1, 2, 3, 4}, {3, 2, 1}}
		calls := 0
		all, err := Measure(t.Context(), c, tensors, examples, 2, func(int) { calls++ })
		if err != nil || calls == 0 {
			t.Fatal(err)
		}
		for i, e := range examples {
			one, err := Measure(t.Context(), c, tensors, [][]uint32{e}, 1, nil)
			if err != nil || one[0] != all[i] {
				t.Errorf("%s: example %d: %v and %d, %v", name, i, one, all[i], err)
			}
			if want := alone(t, c, tensors, e); math.Abs(float64(all[i])/Unit-want) > 2e-6 {
				t.Errorf("%s: example %d has %g, and %g in an evaluation", name, i, float64(all[i])/Unit, want)
			}
		}
		for _, bad := range [][][]uint32{nil, {{1}}, {{1, 11}}, {make([]uint32, 10)}} {
			if _, err := Measure(t.Context(), c, tensors, bad, 1, nil); !errors.Is(err, ErrExamples) {
				t.Errorf("%v: %v", bad, err)
			}
		}
	}
}

// alone is the loss of an evaluation of one example.
func alone(t *testing.T, c architecture.Config, tensors map[string]*tensor.Tensor, e []uint32) float64 {
	t.Helper()
	task, err := model.Language(c, 1, len(e)-1)
	if err != nil {
		t.Fatal(err)
	}
	p, err := task.Eval()
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(p, 1)
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]int32, len(e))
	for i, id := range e {
		ids[i] = int32(id)
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(ids, 1, len(ids))}
	for name, x := range tensors {
		in[optimizer.Param+name] = x
	}
	out, err := exec.Run(in)
	if err != nil {
		t.Fatal(err)
	}
	return float64(out["loss"].F32()[0])
}

// The scores of a batch have a limit, whatever the vocabulary of a model is, and the memory for them is known before.
func TestScoresHaveALimit(t *testing.T) {
	for _, x := range []struct{ vocab, length, rows int }{{11, 8, 128}, {50257, 8, 41}, {1 << 17, 8, 16},
		{1 << 22, 8, 1}} {
		raw := modeltest.GPT2()
		raw["vocab_size"] = x.vocab
		c, err := architecture.Parse(architecture.GPT2, raw)
		if err != nil {
			t.Fatal(err)
		}
		examples := slices.Repeat([][]uint32{make([]uint32, x.length+1)}, 200)
		s, err := newSet(c, nil, examples, 1)
		if err != nil || s.rows != x.rows {
			t.Errorf("%+v: %d rows, %v", x, s.rows, err)
		}
		if n, err := Bytes(c, examples); err != nil || n != int64(x.vocab*x.length*x.rows)*4*arrays {
			t.Errorf("%+v: %d bytes, %v", x, n, err)
		}
		if _, err := Bytes(c, [][]uint32{make([]uint32, 10)}); !errors.Is(err, ErrExamples) {
			t.Error(err)
		}
	}
}

// A loss that is not a number is the largest, and one below zero is zero.
func TestMean(t *testing.T) {
	nan := float32(math.NaN())
	got := []uint32{mean([]float32{nan}), mean([]float32{float32(math.Inf(-1))}), mean([]float32{0.5}),
		mean([]float32{-1, -2}), mean([]float32{-1. / Unit, 0})}
	if want := []uint32{Most, Most, 0, 3 * Unit / 2, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, wanted %v", got, want)
	}
}

// Adjusted losses are those of probabilities that are multiplied by how often the set has a token, and divided by how
// often the model expects it, by a second computation. A model that expects each token as often is not adjusted.
func TestAdjusted(t *testing.T) {
	c, err := architecture.Parse(architecture.GPT2, modeltest.GPT2())
	if err != nil {
		t.Fatal(err)
	}
	tensors := c.Init(7)
	examples := [][]uint32{{1, 2, 3}, {4, 5}, {6, 7, 8, 9, 10, 1, 2, 3, 4}, {3, 2, 1}}
	losses, got, err := Adjusted(t.Context(), c, tensors, examples, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	if plain, err := Measure(t.Context(), c, tensors, examples, 1, nil); err != nil || !slices.Equal(losses, plain) {
		t.Errorf("%v and %v, %v", losses, plain, err)
	}
	var all [][]float64 // probabilities of each position
	has, expects := make([]float64, c.VocabSize()), make([]float64, c.VocabSize())
	for _, e := range examples {
		for j, target := range e[1:] {
			probs := make([]float64, c.VocabSize())
			for v := range probs {
				text := e[:j+1]
				with := float64(len(text)) * alone(t, c, tensors, append(slices.Clone(text), uint32(v)))
				probs[v] = math.Exp(before(t, c, tensors, text) - with)
				expects[v] += probs[v]
			}
			all = append(all, probs)
			has[target]++
		}
	}
	at := 0
	for i, e := range examples {
		sum := 0.0
		for _, target := range e[1:] {
			total := 0.0
			for v, p := range all[at] {
				all[at][v] = p * (has[v] + 1) / (expects[v] + 1)
				total += all[at][v]
			}
			sum -= math.Log(all[at][target] / total)
			at++
		}
		if want := sum / float64(len(e)-1); math.Abs(float64(got[i])/Unit-want) > 1e-5 {
			t.Errorf("example %d has %g, wanted %g", i, float64(got[i])/Unit, want)
		}
	}
	right := NewPrior(2)
	right.Add([]float32{0.75, 0.25}, 0)
	right.Add([]float32{0.25, 0.75}, 1)
	if b := right.Bias(); b[0] != 0 || b[1] != 0 {
		t.Errorf("%v", b)
	}
}

// before is the sum of the losses of the tokens of a text.
func before(t *testing.T, c architecture.Config, tensors map[string]*tensor.Tensor, text []uint32) float64 {
	t.Helper()
	if len(text) < 2 {
		return 0
	}
	return float64(len(text)-1) * alone(t, c, tensors, text)
}
