package train

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/replica"
)

// checkCut reports why a program cannot be cut as a specification says, or not so that each parameter is where that has
// it.
func checkCut(s *Spec, p *program.Program) error {
	if s.Pipeline == nil {
		return nil
	}
	plan, err := stages.Cut(p, s.Pipeline.Cuts())
	if err != nil {
		return err
	}
	if where := StageOfParams(plan, Params(p)); !slices.Equal(where, s.Pipeline.Stage) {
		return fmt.Errorf("its parameters are in stages %v, the specification has %v", where, s.Pipeline.Stage)
	}
	return nil
}

// StageOfParams is the stage of a plan that holds each of the parameters with these names.
func StageOfParams(plan *stages.Plan, names []string) []uint32 {
	where := make([]uint32, len(names))
	for s, stage := range plan.Stages {
		for _, n := range Params(stage.Whole) {
			where[slices.Index(names, n)] = uint32(s)
		}
	}
	return where
}

// Unsplit is the specification of a job whose units are whole replicas, and compute the same bits.
func (s *Spec) Unsplit() *Spec {
	if s.Pipeline == nil {
		return s
	}
	u := *s
	u.Units, u.Pipeline = s.Units/s.Pipeline.Stages(), nil
	return &u
}

// Plan is the step of a job in stages, once Divide has cut it; nil: its units are no stages.
func (t *Task) Plan() *stages.Plan {
	if t.kinds == nil {
		return nil
	}
	return t.kinds.plan
}

// cut makes the kinds of units of a job in stages.
func (t *Task) cut() error {
	plan, err := stages.Cut(t.Step, t.Spec.Pipeline.Cuts())
	if err != nil {
		return err
	}
	k := &kinds{plan: plan}
	for _, st := range plan.Stages {
		x, err := cpu.Compile(st.Whole, t.Exec.Threads())
		if err != nil {
			return err
		}
		k.execs = append(k.execs, x)
	}
	t.kinds = k
	return nil
}

// stageOf is the part of a checkpoint that the unit of a stage begins with.
func stageOf(p *replica.Pipeline, c *Checkpoint, unit uint32) *Checkpoint {
	_, stage := p.Of(unit)
	part := &Checkpoint{Round: c.Round, Names: replica.Part(p, stage, c.Names),
		Params: replica.Part(p, stage, c.Params), Outer: make([][]*tensor.Tensor, len(c.Outer))}
	for k, list := range c.Outer {
		part.Outer[k] = replica.Part(p, stage, list)
	}
	return part
}
