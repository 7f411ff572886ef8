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
