package bundle

import (
	"testing"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/replica"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
)

// A worker needs the memory of its stage: of six, less than a quarter of the weights, gradients and moments of the
// model, however many checkpoints are held. A model that is not cut needs all of them, and its checkpoints.
func TestMemoryIsThatOfAStage(t *testing.T) {
	c, err := architecture.Parse(architecture.Llama, map[string]any{"num_hidden_layers": 12, "hidden_size": 640,
		"num_attention_heads": 10, "num_key_value_heads": 10, "intermediate_size": 1728, "max_position_embeddings": 16,
		"vocab_size": 256})
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.LanguageOf(c, model.Batch{Sequences: 4, Length: 16, Micro: 1})
	if err != nil {
		t.Fatal(err)
	}
	step, err := task.TrainStep(optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, MaxGradNorm: 1})
	if err != nil {
		t.Fatal(err)
	}
	m := data.Manifest{Width: 2, TrainTokens: 1000, ShardTokens: 1000}
	s := &train.Spec{Units: 1, Steps: 1, Batch: 4, Length: 16,
		Exchange: train.Exchange{Codec: codec.Float32, Outer: outer.SGD}}
	whole := Planned(s, step, m)
	whole.terms.Units = 1
	before := []uint32{3, 5, 7, 9, 11}
	cut := *s
	cut.Units, cut.Pipeline = 6, &replica.Pipeline{Before: before}
	plan, err := stages.Cut(step, cut.Pipeline.Cuts())
	if err != nil {
		t.Fatal(err)
	}
	cut.Pipeline.Stage = train.StageOfParams(plan, train.Params(step))
	j := Planned(&cut, step, m)
	of := 4 * j.sizes().params
	stage, err := j.StageMemory(1, false)
	if err != nil || 4*stage > of {
		t.Errorf("a stage takes %d MiB, the weights, gradients and moments of the model %d, %v", stage>>20, of>>20, err)
	}
	verifier, err := j.StageMemory(1, true)
	if err != nil || verifier < stage || 2*verifier > of {
		t.Errorf("a verifier takes %d MiB, the weights, gradients and moments %d, %v", verifier>>20, of>>20, err)
	}
	if all := whole.Memory(1); all < of+MaxHeld*j.sizes().params || all < 6*stage {
		t.Errorf("the model that is not cut takes %d MiB, a stage %d", all>>20, stage>>20)
	}
	if held := j.Memory(1); held < verifier+MaxHeld*j.sizes().model {
		t.Errorf("with its checkpoints in memory a stage takes %d MiB", held>>20)
	}
	if laid := j.Aside(); laid < MaxHeld*j.sizes().model+of/4*6 {
		t.Errorf("%d MiB lie on the disk", laid>>20)
	}
}
