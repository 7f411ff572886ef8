package model

import (
	"math"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
)

// TestHalf trains with layers that read and give bfloat16: near the steps in float32, in less memory, and with the loss
// of Eval.
func TestHalf(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	all := tiny(t)
	all["deep"] = mustParse(t, architecture.Llama, map[string]any{"num_hidden_layers": 6, "hidden_size": 32,
		"num_attention_heads": 2,
		"num_key_value_heads": 2, "intermediate_size": 88, "vocab_size": 31, "max_position_embeddings": 128})
	for name, c := range all {
		length := min(c.Context(), 96)
		tokens := someTokens(c, 4, length+1, 51)
		var want, got state
		var whole, half int64
		for _, b := range []Batch{{}, {Half: true}} {
			b.Sequences, b.Length = 4, length
			task, err := LanguageOf(c, b)
			if err != nil {
				t.Fatal(err)
			}
			p, err := task.TrainStep(o)
			e := mustCompile(t, p, err)
			in := stepInputs(c.Init(5), tokens, o, 0.01)
			out := mustRun(t, e, in)
			if !b.Half {
				want, whole = out, e.PeakBytes()
				continue
			}
			got, half = out, e.PeakBytes()
			p, err = task.Eval()
			if loss := mustRun(t, mustCompile(t, p, err), evalInputs(task, in))["loss"]; loss.Root() != out["loss"].Root() {
				t.Errorf("%s: Eval has another loss than the step", name)
			}
			step, err := task.TrainStep(o)
			if err != nil {
				t.Fatal(err)
			}
			lean, err := cpu.CompileLean(step, 1)
			if err != nil {
				t.Fatal(err)
			}
			for n, x := range mustRun(t, lean, in) {
				if x.Root() != out[n].Root() {
					t.Errorf("%s: another %s where activations are computed twice", name, n)
				}
			}
		}
		a, b := scalar(want["loss"]), scalar(got["loss"])
		norm := scalar(got["grad_norm"]) / scalar(want["grad_norm"])
		if want["grad_norm"].Root() == got["grad_norm"].Root() || math.Abs(a-b) > 0.02 || norm < 0.9 || norm > 1.1 {
			t.Errorf("%s: loss %v and in bfloat16 %v, norms of gradients %v apart", name, a, b, norm)
		}
		t.Logf("%s: %d bytes, in float32 %d", name, half, whole)
		if name == "deep" && 10*half > 8*whole {
			t.Errorf("%d bytes, in float32 %d", half, whole)
		}
	}
}

// TestDropout drops in training alone, differently in every step, with the gradient of the elements that are left.
func TestDropout(t *testing.T) {
	o := optimizer.AdamW{Eps: 1e-8}
	for name, c := range tiny(t) {
		task, err := LanguageOf(c, Batch{Sequences: testBatch, Length: testLength, Dropout: 0.2})
		if err != nil {
			t.Fatal(err)
		}
		p, err := task.TrainStep(o)
		e := mustCompile(t, p, err)
		w := strongWeights(c.Tensors())
		in := stepInputs(w, someTokens(c, testBatch, testLength+1, 61), o, 0)
		step := func(index int64) float64 {
			key := tensor.New(tensor.Make(tensor.Int64, 3))
			tensor.As[int64](key.Bytes())[2] = index << 32
			in[Dice] = key
			return scalar(mustRun(t, e, in)["loss"])
		}
		one, again, two := step(1), step(1), step(2)
		p, err = task.Eval()
		whole := scalar(mustRun(t, mustCompile(t, p, err), evalInputs(task, in))["loss"])
		if one != again || one == two || one == whole {
			t.Errorf("%s: losses %v, %v and %v, and without dropout %v", name, one, again, two, whole)
		}
		out := mustRun(t, e, in)
		n := c.Tensors()[len(c.Tensors())-1].Name // the first moment is the gradient
		h, direction, norm := float32(1e-2), out["m/"+n].F32(), 0.0
		for _, g := range direction {
			norm += float64(g) * float64(g)
		}
		at := func(by float32) float64 {
			x := w[n].Clone()
			for i, g := range direction {
				x.F32()[i] += by * g / float32(math.Sqrt(norm))
			}
			in["p/"+n] = x
			return step(2)
		}
		slope := (at(h) - at(-h)) / float64(2*h)
		checkNear(t, name+" slope", slope, math.Sqrt(norm), 0.02*math.Sqrt(norm)+1e-3)
	}
	if _, err := LanguageOf(tiny(t)["gpt2"], Batch{Sequences: 1, Length: 4, Dropout: 1}); err == nil {
		t.Error("all is dropped")
	}
}
