package prepare

import (
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/rollout"
)

// forms are those of the products of layers, by training.precision. Others are of float32.
var forms = map[string]exact.Form{"exact15": {Bits: 15, Block: 64}, "exact8": {Bits: 8, Block: 64}}

// task is the loss of the job on a batch of the given number of examples, of which part are computed at a time; 0: all.
func (b compilation) task(examples, part int) (model.Task, error) {
	j := b.Job
	if c, ok := b.Model.(model.Classifier); ok {
		return model.Classify(c, model.Batch{Sequences: examples, Micro: part, Dropout: j.Training.Dropout})
	}
	batch := model.Batch{Sequences: examples, Length: j.SequenceLen, Micro: part, Dropout: j.Training.Dropout,
		Half: j.Training.Precision == "bf16", Form: forms[j.Training.Precision]}
	if !j.Training.TrainOnInputs || !j.SamplePacking {
		batch.Silent = b.Tokenizer.VocabSize()
	}
	switch j.Task {
	case spec.TaskDPO:
		return model.Preference(b.Trained, batch, j.DPO.Beta)
	case spec.TaskGRPO:
		return model.Reinforce(b.Trained, batch, model.Rollout{Group: j.Rollout.Group, Tokens: j.Rollout.MaxTokens,
			Temperature: j.Rollout.Temperature, Reward: rollout.Weights(j.Reward)})
	}
	return model.LanguageOf(b.Trained, batch)
}
