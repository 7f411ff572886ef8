package consumer

import (
	"errors"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/measured"
	"github.com/starling-network/starling/node/prepare"
)

// savedEvery is the number of rounds from one saved checkpoint to the next.
func savedEvery(b *prepare.CompiledJob) int {
	return max(1, b.Job.Checkpoint.EverySteps/int(b.Spec.Steps))
}

// copyCheckpoint has the model of a saved checkpoint copied to the stores that want it. The last checkpoint is the
// model of the run.
func copyCheckpoint(c *Consumer, round uint32, ckpt *train.Checkpoint) {
	var to []string
	for _, p := range c.Options.Job.Output.Push {
		if p.Checkpoints {
			to = append(to, p.To)
		}
	}
	if c.Options.Push == nil || len(to) == 0 || ckpt == nil || round == 0 || round == c.Job.Spec.Rounds ||
		int(round)%savedEvery(c.Job) != 0 {
		return
	}
	leaves, err := c.Job.Leaves()
	best, unknown := measured.Best(c.Job, c.eval, ckpt)
	files, failed := prepare.ExportModel(c.Job, ckpt, best, leaves)
	if err = errors.Join(err, unknown, failed); err != nil {
		c.Log.Warn("a checkpoint is not copied", "round", round, "err", err)
		return
	}
	defer ckpt.Rest()
	c.Options.Push.Checkpoint(int(round*c.Job.Spec.Steps), to, files)
}
