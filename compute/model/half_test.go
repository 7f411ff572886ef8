package model

import (
	"math"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/optimizer"
)

// TestHalf trains with layers that read and give bfloat16: near the steps in float32, in less memory, and with the loss
// of Eval.
func TestHalf(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	all := tiny(t)
	all["deep"] = mustParse(t, Llama, map[string]any{"num_hidden_layers": 6, "hidden_size": 32, "num_attention_heads": 2,
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
