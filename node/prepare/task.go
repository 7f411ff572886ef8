package prepare

import (
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/model/textclass"
	"github.com/starling-network/starling/node/prepare/rules"
)

// task is the loss of the job on a batch of the given number of examples, of which part are computed at a time; 0: all.
func (b compilation) task(examples, part int) (model.Task, error) {
	j := b.Job
	batch := model.Batch{Sequences: examples, Length: j.SequenceLen, Micro: part, Dropout: j.Training.Dropout,
		Half: j.Training.Precision == "bf16", Form: exact.Forms[j.Training.Precision]}
	switch c := b.Model.(type) {
	case textclass.Network:
		if j.Task == spec.TaskReward {
			return model.Rank(c.On(b.Trained), batch)
		}
		return model.Classify(c.On(b.Trained), batch)
	case embed.Network:
		return model.Contrast(c.On(b.Trained), batch, j.Embed.Temperature)
	case model.Denoiser:
		return model.Denoise(c, batch)
	case model.Classifier:
		return model.Classify(c, batch)
	}
	if !j.Training.TrainOnInputs || !j.SamplePacking {
		batch.Silent = b.Tokenizer.VocabSize()
	}
	switch j.Task {
	case spec.TaskDPO:
		return model.Preference(b.Trained, batch, j.DPO.Beta)
	case spec.TaskGRPO:
		drawn := rules.Drawn(j, rules.Rewards(j, b.rule, b.ends, b.judges.Weights))
		return model.Reinforce(b.Trained, batch, drawn, b.judges.Judges()...)
	}
	return model.LanguageOf(b.Trained, batch)
}
