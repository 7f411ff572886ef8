package prepare

import (
	"fmt"

	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/embed"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/model/textclass"
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
		return model.Reinforce(b.Trained, batch, model.Rollout{Group: j.Rollout.Group, Tokens: j.Rollout.MaxTokens,
			Temperature: j.Rollout.Temperature, KL: j.Rollout.KL, Apart: b.apart(),
			Reward: rollout.Reward{Exact: j.Reward.Exact, Prefix: j.Reward.Prefix, Rule: b.rule, Ends: b.ends}})
	}
	return model.LanguageOf(b.Trained, batch)
}

// apart is how many steps a unit has that learns from answers which other units draw; 0: it draws them by itself.
func (b compilation) apart() int {
	return b.Job.Strategy.SyncSteps * min(1, b.Job.Rollout.Staleness)
}

// Operators with which a token of an answer is drawn, at least: those of each layer, and the others. Most models have
// about 70 and 60.
const leastOfLayer, leastOfToken = 60, 50

// answersFit refuses answers whose program would have too many operators for a dispute, before it is made. The error is
// a *problem.ErrorList.
func (b compilation) answersFit() error {
	j := b.Job
	if j.Task != spec.TaskGRPO {
		return nil
	}
	each := leastOfLayer*b.Language.Layers + leastOfToken
	if j.Rollout.MaxTokens*each <= referee.MaxOperators {
		return nil
	}
	return j.Refuse("rollout.max_tokens", problem.TooLarge, "the answers are too long for this model",
		fmt.Errorf("a step that draws %d tokens with %d layers has more than %d operators, and a dispute takes no more",
			j.Rollout.MaxTokens, b.Language.Layers, referee.MaxOperators),
		fmt.Sprintf("lower it to about %d", referee.MaxOperators*3/4/each))
}
