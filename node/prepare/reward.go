package prepare

import (
	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/node/prepare/rules"
)

// ruled makes the rule that rewards answers ready, if the job has one. The error is a *problem.ErrorList.
func (b *compilation) ruled() (err error) {
	if b.Job.Task == spec.TaskGRPO && b.Job.Reward.Ruled() {
		b.rule, b.ends, err = rules.Make(b.Job, b.Tokenizer, rules.First(b.Corpus, b.Example))
	}
	return err
}

// Drawn returns the program that draws and rewards answers as a step does: see model.Task.Drawn.
func (b *CompiledJob) Drawn() (*program.Program, error) {
	task, err := compilation{b}.task(int(b.Spec.Batch), 0)
	if err != nil {
		return nil, err
	}
	p, err := task.Drawn()
	if p == nil || err != nil {
		return nil, err
	}
	return p.In(b.Step.Numerics), nil
}
