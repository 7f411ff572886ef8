package verify

import (
	"context"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/replica"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/role/engine"
)

// replica computes a replica by the step that was not cut, and makes the updates of its stages of that.
func (v *verification) replica(ctx context.Context, base *train.Checkpoint, number uint32, made []sent) error {
	task := <-v.tasks
	defer func() { v.tasks <- task }()
	r, err := task.Resume(base, number, nil, false, nil, func(train.Progress) error { return ctx.Err() })
	if err != nil {
		return err
	}
	r.End = nil
	for stage := range made {
		unit := number*uint32(len(made)) + uint32(stage)
		names := replica.Part(v.b.Spec.Pipeline, uint32(stage), base.Names)
		part := *r
		part.Delta = replica.Part(v.b.Spec.Pipeline, uint32(stage), r.Delta)
		u, _, err := outer.Commit(v.b.Spec, names, base.Round, unit, &part, nil)
		if err != nil {
			return err
		}
		served, _, err := engine.Pack(v.b.Spec, v.b.Step, v.b.Slices, u)
		if err != nil {
			return err
		}
		made[stage] = v.sentAs(base, u, served)
	}
	return nil
}
