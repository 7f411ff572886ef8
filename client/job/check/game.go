package check

import (
	"fmt"

	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/client/job/spec"
)

// game checks the keys of a game: that sequences have room for the texts that are read before an answer.
func game(c *checker) {
	const stages, reads, length = "rollout.stages", "rollout.reads", "sequence_len"
	if c.bad("rollout", stages, reads, "rollout.group", "rollout.max_tokens") {
		return
	}
	r := c.Rollout
	across(c)
	if !r.Game() {
		if c.file.Given(reads) {
			c.report(reads, problem.BadValue, fmt.Sprintf("%s is given, and %s is %d", reads, stages, r.Stages),
				"players read the texts of earlier stages", "remove it, or add stages: 3 to rollout")
		}
		return
	}
	for i, rule := range c.Reward.Rules {
		if at := fmt.Sprintf("reward.rules.%d.kind", i); rule.Kind == spec.RewardModel && !c.bad(at) {
			c.report(at, problem.Unsupported, fmt.Sprintf("%s is %s, and %s is %d", at, rule.Kind, stages, r.Stages),
				"a reward model reads sequences of one answer", "use another kind, or remove stages")
		}
	}
	if r.Reads > r.Group {
		c.report(reads, problem.BadValue, fmt.Sprintf("%s is %d, and rollout.group is %d", reads, r.Reads, r.Group),
			"a prompt has as many players as answers", fmt.Sprintf("use at most %d, or raise group", r.Group))
		return
	}
	if all := r.Room() + r.MaxTokens; all >= c.SequenceLen && r.MaxTokens < c.SequenceLen && !c.bad(length) {
		c.report(length, problem.BadValue, fmt.Sprintf("%s is %d, and the texts of %d stages have %d tokens", length,
			c.SequenceLen, r.Stages, all), fmt.Sprintf("the last answer follows %d texts of each earlier stage, of max_tokens "+
			"each, and the prompt", r.Reads), "raise sequence_len, or lower max_tokens or reads")
	}
}

// across checks that there are answers of other models, and stages that read them.
func across(c *checker) {
	const at, stages, shared = "rollout.critics", "rollout.stages", "rollout.shared"
	if c.bad(at, "rollout.sharing", shared) || !c.Rollout.Across() {
		return
	}
	r := c.Rollout
	for _, key := range []struct {
		is, why, fix string
		on           bool
	}{{"rollout.sharing is " + r.Sharing, "without a swarm there is one model", "add sharing: swarm to rollout",
		!r.Swarm()},
		{shared + " is 0", "no answers of others reach a model", "remove shared", r.Swarm() && r.Shared == 0},
		{fmt.Sprintf("%s is %d", stages, r.Stages), "answers are read in the stages after the first",
			"add stages: 3 to rollout", !r.Game()}} {
		if key.on {
			c.report(at, problem.BadValue, at+" is others, and "+key.is, key.why, key.fix+", or remove critics")
		}
	}
}
