package model

import (
	"maps"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
)

// TestRecomputedSteps holds steps that recompute against those that keep everything: every bit, in less memory.
func TestRecomputedSteps(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1}
	all := tiny(t)
	maps.Copy(all, adaptedModels(t))
	all["deep"] = mustParse(t, architecture.Llama, map[string]any{"num_hidden_layers": 6, "hidden_size": 16,
		"num_attention_heads": 2,
		"num_key_value_heads": 1, "intermediate_size": 48, "vocab_size": 31, "max_position_embeddings": 64})
	for name, c := range all {
		length := min(c.Context(), 48)
		for _, micro := range []int{0, 2} {
			task, err := LanguageOf(c, Batch{Sequences: 4, Length: length, Micro: micro})
			if err != nil {
				t.Fatal(err)
			}
			w := strongWeights(c.Tensors())
			maps.Copy(w, strongWeights(c.Adapters()))
			in := taskInputs(task, w, state{"tokens": someTokens(c, 4, length+1, 31)}, o, 0.01)
			p, err := task.TrainStep(o)
			whole := mustCompile(t, p, err)
			lean, err := cpu.CompileLean(p, 1)
			if err != nil {
				t.Fatal(err)
			}
			want, got := mustRun(t, whole, in), mustRun(t, lean, in)
			for n, x := range want {
				if got[n].Root() != x.Root() {
					t.Errorf("%s in parts of %d: another %s", name, micro, n)
				}
			}
			if lean.PeakBytes() > whole.PeakBytes() || name == "deep" && 10*lean.PeakBytes() > 8*whole.PeakBytes() {
				t.Errorf("%s in parts of %d: %d bytes, that keeps everything %d", name, micro, lean.PeakBytes(), whole.PeakBytes())
			}
			t.Logf("%s in parts of %d: %d of %d bytes", name, micro, lean.PeakBytes(), whole.PeakBytes())
			ops := 0
			if err := lean.Trace(in, func(int, *tensor.Tensor) error { ops++; return nil }); err != nil || ops != len(p.Ops) {
				t.Errorf("%s: a trace of %d operators of %d: %v", name, ops, len(p.Ops), err)
			}
		}
	}
}
