package model

import (
	"maps"
	"testing"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/blocks"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
)

// TestWeightsInBlocks trains adapters on weights in 8 and in 4 bits: with the bits of adapters on the float32 weights
// that these stand for, and in less memory.
func TestWeightsInBlocks(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	deep := mustParse(t, architecture.Llama, map[string]any{"num_hidden_layers": 8, "hidden_size": 128,
		"num_attention_heads": 4,
		"num_key_value_heads": 2, "intermediate_size": 384, "vocab_size": 64, "max_position_embeddings": 16})
	for name, c := range map[string]architecture.Config{"gpt2": tiny(t)["gpt2"], "llama-tied": tiny(t)["llama-tied"],
		"deep": deep} {
		step := func(bits, micro int) (Task, state) {
			adapted, err := c.Adapt(architecture.LoRA{Rank: 2, Alpha: 4, Targets: []string{architecture.AllLinear}, Bits: bits})
			if err != nil {
				t.Fatal(err)
			}
			task, err := LanguageOf(adapted, Batch{Sequences: 2, Length: testLength, Micro: micro})
			if err != nil {
				t.Fatal(err)
			}
			return task, strongWeights(adapted.Adapters())
		}
		for _, at := range [][2]int{{8, 0}, {8, 1}, {4, 0}, {4, 1}} {
			bits, micro := at[0], at[1]
			task, adapters := step(bits, micro)
			plain, _ := step(0, micro)
			var names []string
			var shapes []tensor.Shape
			for _, n := range task.Frozen {
				names, shapes = append(names, n.Name), append(shapes, n.Shape)
			}
			list, err := blocks.Compress(names, shapes, strongWeights(c.Tensors()))
			if err != nil {
				t.Fatal(err)
			}
			coded := state{}
			for i, n := range names {
				coded[n] = list[i]
			}
			run := func(task Task, weights state) (state, int64) {
				w := maps.Clone(weights)
				maps.Copy(w, adapters)
				p, err := task.TrainStep(o)
				e := mustCompile(t, p, err)
				in := taskInputs(task, w, state{"tokens": someTokens(c, 2, testLength+1, 41)}, o, 0.01)
				return mustRun(t, e, in), e.PeakBytes()
			}
			got, small := run(task, coded)
			want, large := run(plain, blocks.Expand(coded))
			for n, x := range want {
				if got[n].Root() != x.Root() {
					t.Errorf("%s in %d bits in parts of %d: another %s", name, bits, micro, n)
				}
			}
			t.Logf("%s in %d bits in parts of %d: %d bytes, %d with float32", name, bits, micro, small, large)
			if name == "deep" && 2*small > large {
				t.Errorf("%d bytes, %d with float32", small, large)
			}
		}
	}
}
