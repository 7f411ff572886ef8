package rules

import (
	"fmt"

	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
)

// Operators with which a token of an answer is drawn, at least: those of each layer, and the others. Most models have
// about 70 and 60.
const leastOfLayer, leastOfToken = 60, 50

// ofNucleus are those that rollout.top_p adds to a token.
const ofNucleus = 110

// Fit refuses answers of a model with a number of layers whose program would have too many operators for a dispute,
// before it is made. The error is a *problem.ErrorList.
func Fit(j *job.Job, layers int) error {
	if j.Task != spec.TaskGRPO {
		return nil
	}
	each := leastOfLayer*layers + leastOfToken
	if j.Rollout.TopP < 1 {
		each += ofNucleus
	}
	each *= j.Rollout.Stages
	if j.Rollout.MaxTokens*each <= referee.MaxOperators {
		return nil
	}
	return j.Refuse("rollout.max_tokens", problem.TooLarge, "the answers are too long for this model",
		fmt.Errorf("a step that draws %d tokens with %d layers has more than %d operators, and a dispute takes no more",
			j.Rollout.MaxTokens, layers, referee.MaxOperators),
		fmt.Sprintf("lower it to about %d", referee.MaxOperators*3/4/each))
}
