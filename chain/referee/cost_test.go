package referee

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
)

// TestCostOfATrace prints what a party hashes and holds to trace a step, and what it computes to look at an operator in
// the middle, from the programs alone: of an adapter of TinyLlama, and of a model with all of its weights. The weights
// of the base model are hashed once a job, and not in a dispute.
func TestCostOfATrace(t *testing.T) {
	adamW := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	llama := func(layers, width, heads, keys, inner, length, vocab int) architecture.Config {
		c, err := architecture.Parse(architecture.Llama, map[string]any{"num_hidden_layers": layers, "hidden_size": width,
			"num_attention_heads": heads, "num_key_value_heads": keys, "intermediate_size": inner,
			"max_position_embeddings": length, "vocab_size": vocab})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	adapted, err := llama(22, 2048, 32, 4, 5632, 2048, 32000).Adapt(architecture.LoRA{Rank: 16, Alpha: 32,
		Targets: []string{architecture.AllLinear}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		config architecture.Config
	}{{"1.1 B, LoRA 16", adapted}, {"350 M, all weights", llama(24, 1024, 16, 16, 2816, 512, 32000)}} {
		p, err := model.TrainStep(c.config, adamW, 1, 512)
		if err != nil {
			t.Fatal(err)
		}
		var all, frozen, views int
		for i := range p.Ops {
			op := &p.Ops[i]
			n := op.Out.Bytes()
			all += n
			switch {
			case op.Kind == program.Input && slices.Contains(train.Frozen(p), cutParam(op.Name)):
				frozen += n
			case op.Kind == program.Identity || op.Kind == program.Reshape:
				views += n
			}
		}
		middle := len(p.Ops) / 2
		one := (&program.Program{Numerics: p.Numerics, Ops: p.Ops,
			Outputs: []program.Output{{Name: "x", Value: int32(middle)}}}).Only("x")
		t.Logf("%-18s outputs %6.2f GB, hashed in a trace %6.2f GB; an operator in the middle: %3.0f %% of the step is "+
			"computed, %8.5f GB hashed", c.name, gb(all), gb(all-frozen-views), 100*float64(one.Flops())/float64(p.Flops()),
			gb(p.Ops[middle].Out.Bytes()))
		if name := "1.1 B, LoRA 16"; c.name == name && gb(frozen) < 4 {
			t.Errorf("%s has %.2f GB of frozen weights", name, gb(frozen))
		}
	}
}

func cutParam(name string) string { return name[min(len(name), len(train.Param)):] }

func gb(n int) float64 { return float64(n) / 1e9 }
