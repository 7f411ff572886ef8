// Package stages holds workers that compute a stage of a model falsely, where others compute its other stages.
package stages

import (
	"context"
	"fmt"
	"slices"

	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/adversary"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/staged"
)

// False is the plan of a stage that computes another operator than its program has in a phase, and which operator of
// the step that is.
func False(step *program.Program, plan *stages.Plan, before []int, stage int, phase order.Phase) (*stages.Plan, int,
	error) {
	var list []int
	for i, at := range plan.At {
		switch step.Ops[i].Kind {
		case program.Add, program.Mul, program.AdamM:
			// Stages that are late update their weights after the last backward.
			if at.Stage == stage && (at.Task.Phase == phase || phase == order.Update && step.Ops[i].Kind == program.AdamM) {
				list = append(list, i)
			}
		}
	}
	if len(list) == 0 {
		return nil, 0, fmt.Errorf("stage %d has no operator to lie about in phase %d", stage, phase)
	}
	at := list[len(list)/2]
	p := &program.Program{Numerics: step.Numerics, Ops: slices.Clone(step.Ops), Outputs: step.Outputs}
	switch op := &p.Ops[at]; op.Kind {
	case program.Add:
		op.Kind = program.Sub
	case program.Mul:
		op.Kind = program.Max
	default:
		op.Ints = []int64{0} // a moment of the last gradient alone
	}
	wrong, err := stages.Cut(p, before)
	return wrong, at, err
}

// Lies is a worker that computes another operator than its stages have in a phase, sends the result, and commits to
// that. Where units are no stages it skips its training.
type Lies struct{ Phase order.Phase }

// Install implements Attack.
func (a Lies) Install(c adversary.Setup) adversary.Step {
	x, ok := c.Honest.(*staged.Engine)
	if !ok {
		return adversary.Skips{}.Install(c)
	}
	c.Party.Compute = liar{x, a.Phase}
	return c.Step
}

// InTurn lies in the forward, in the backward, or in the update: the first, the second and the third of several
// workers.
func InTurn(i int) Lies {
	return Lies{[]order.Phase{order.Forward, order.Backward, order.Update}[i%3]}
}

type liar struct {
	*staged.Engine
	phase order.Phase
}

// plan is the false one for a unit.
func (l liar) plan(unit uint32) (*stages.Plan, error) {
	t := l.Task()
	_, stage := t.Spec.Pipeline.Of(unit)
	plan, _, err := False(t.Step, t.Plan(), t.Spec.Pipeline.Cuts(), int(stage), l.phase)
	return plan, err
}

// Train implements party.Compute.
func (l liar) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	plan, err := l.plan(unit)
	if err != nil {
		return nil, err
	}
	return l.TrainBy(ctx, plan, name, unit)
}

// Oracle implements party.Compute: it answers from its own false execution.
func (l liar) Oracle(name terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	unit := g.Config.Unit
	plan, err := l.plan(unit)
	if err != nil {
		return nil, err
	}
	base, err := l.Base(name)
	if err != nil {
		return nil, err
	}
	_, stage := l.Task().Spec.Pipeline.Of(unit)
	of := *l.Task().Of(unit)
	own := &train.Task{Spec: of.Spec, Step: plan.Stages[stage].Whole, Corpus: of.Corpus, Frozen: of.Frozen,
		Received: of.Received}
	if own.Exec, err = cpu.Compile(own.Step, 1); err != nil {
		return nil, err
	}
	return witness.New(own, base, unit, nil, bundle.ShardTokens), nil
}
