package pipeline

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee"
	"github.com/starling-network/starling/chain/referee/link"
	"github.com/starling-network/starling/chain/referee/witness"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/handover"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	liars "github.com/starling-network/starling/role/adversary/stages"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/pipeline"
)

// Attacks are how attacks on a replica ended.
type Attacks struct {
	Liars     int `json:"liars"`     // stages that computed another program, forward, backward or in the update
	Convicted int `json:"convicted"` // of them, by a dispute about one part of the operator in which they lied
	Denials   int `json:"denials"`   // values that a stage denied, and had signed as sent or received
	Shown     int `json:"shown"`     // of them, by the head that it has signed
	Withheld  int `json:"withheld"`  // frames that a stage did not send
	Named     int `json:"named"`     // of them, those of which the stage was named, and no other
	Wrong     int `json:"wrong"`     // honest stages that were found wrong
	Restarts  int `json:"restarts"`  // stages that stopped in the middle of a step and restarted
	Resumed   int `json:"resumed"`   // of them, those after which all stages ended with the bits of the whole model
}

// attack attacks a job in every stage.
func (j *job) attack(a *Attacks) error {
	for s := range j.plan.Stages {
		for _, phase := range []order.Phase{order.Forward, order.Backward, order.Update} {
			if err := j.lie(s, phase, a); err != nil {
				return err
			}
			if err := errors.Join(j.withhold(s, phase, a), j.restart(s, phase, a)); err != nil {
				return err
			}
		}
	}
	return j.deny(a)
}

// liar is the plan of a stage that computes another operator than its program has, and which one.
func (j *job) liar(stage int, phase order.Phase) (*stages.Plan, int, error) {
	return liars.False(j.task.Step, j.plan, j.before, stage, phase)
}

// lie has a stage lie in a phase of every step, executes all stages again, and plays the dispute with the liar.
func (j *job) lie(stage int, phase order.Phase, a *Attacks) error {
	plan, _, err := j.liar(stage, phase)
	if err != nil {
		return err
	}
	p := j.play(map[int]*stages.Plan{stage: plan}, nil, true)
	if err := errors.Join(p.errs...); err != nil {
		return err
	}
	a.Liars++
	for s := range j.plan.Stages {
		mine, err := j.again(p, s)
		if err != nil {
			return err
		}
		differs := !slices.Equal(mine, p.results[s].Segments)
		switch {
		case s != stage && differs:
			a.Wrong++
		case s == stage && differs:
			g, err := j.judged(p, plan, stage, mine, j.plan.Stages[stage].Whole)
			if err != nil {
				return err
			}
			if v := g.Verdict; v.AsserterLies && v.Reason == dispute.Recomputed && v.Leaf == string(dispute.Tile) {
				a.Convicted++
			}
		}
	}
	return nil
}

// judged plays the dispute of a verifier with a stage, both of which execute the unit of the stage again: the holder of
// the stage by a plan of its own. mine are the roots of the verifier, and step is the program that the chain knows.
func (j *job) judged(p *played, own *stages.Plan, stage int, mine []canon.Digest,
	step *program.Program) (g dispute.Dispute, err error) {
	task, base, err := j.alone(p, j.plan, stage)
	if err != nil {
		return g, err
	}
	other, _, err := j.alone(p, own, stage)
	if err != nil {
		return g, err
	}
	segments, judge := p.results[stage].Segments, referee.OfStage(j.task.Spec, step)
	const holder, verifier = "holder", "verifier"
	config, err := judge.Config("job", work.AuditTarget{
		RoundState: work.RoundState{Base: terms.Checkpoint{Root: base.Root()}},
		Unit: work.Unit{Index: unit, Worker: holder,
			Commit: work.Commitment{Segments: segments, Update: canon.Sum("starling/bench/update")}},
	}, verifier, 1)
	if err != nil {
		return g, err
	}
	first := 0
	for mine[first] == segments[first] {
		first++
	}
	if g, err = dispute.Open(config, uint32(first), 1); err != nil {
		return g, err
	}
	asserter := witness.New(other, base, unit, nil, bundle.ShardTokens)
	challenger := witness.New(task, base, unit, nil, bundle.ShardTokens)
	for g.Verdict == nil {
		next, who, mine := dispute.NextAsserterMove, holder, asserter
		if g.Turn == dispute.Challenger {
			next, who, mine = dispute.NextChallengerMove, verifier, challenger
		}
		m, err := next(g, mine)
		if err != nil {
			return g, err
		}
		if g, err = g.Apply(1, who, m, judge); err != nil {
			return g, err
		}
	}
	return g, nil
}

// withhold lets a stage stop before it sends the second frame of a phase in the second step. It counts whether that
// stage is named as the late one.
func (j *job) withhold(stage int, phase order.Phase, a *Attacks) error {
	stops := order.Task{Phase: phase, Number: 1}
	if !j.sends(stage, stops) {
		return nil
	}
	p := j.play(nil, func(from, _ int, m *pipeline.Message) bool {
		return from != stage || m.Frame == nil || m.Frame.Step != 1 || m.Frame.Task != stops
	}, false)
	if errors.Join(p.errs...) == nil {
		return fmt.Errorf("all stages ended, and stage %d withheld %v", stage, stops)
	}
	late := p.units[0].Stalled(j.task.Spec.Steps, func(from, to int) handover.Progress {
		taken, signed := p.units[to].Progress(from, to).Taken, p.units[from].Progress(from, to).Signed
		switch stage {
		case from:
			signed = taken // it shows no more
		case to:
		default:
			taken = signed // a holder that is asked takes every frame that was sent to it
		}
		return handover.Progress{Signed: signed, Taken: taken}
	})
	a.Withheld++
	if slices.Equal(late, []uint32{uint32(stage)}) {
		a.Named++
	}
	return nil
}

// sends reports whether a stage sends a frame after a task.
func (j *job) sends(stage int, t order.Task) bool {
	return slices.ContainsFunc(j.plan.Transfers, func(tr stages.Transfer) bool {
		return tr.From == stage && tr.After == t
	})
}

// deny has each stage commit to another value than each that it has signed, in the second step.
func (j *job) deny(a *Attacks) error {
	p := j.play(nil, nil, true)
	if err := errors.Join(p.errs...); err != nil {
		return err
	}
	for stage := range j.plan.Stages {
		states, err := j.states(p, stage)
		if err != nil {
			return err
		}
		all := p.exchanged[stage]
		for _, x := range all[len(all)-1] {
			j.denied(stage, x, states, p.results[stage].Segments, a)
		}
	}
	return nil
}

// denied has a stage deny each value of a link in the second step, and none. x is what its sides have signed in the
// end.
func (j *job) denied(stage int, x pipeline.Exchange, states link.States, segments []canon.Digest, a *Attacks) {
	const step = 1
	of := terms.Link{From: uint32(x.From), To: uint32(x.To)}
	if h, err := states.Head(j.plan, stage, of, segments); err != nil || h != x.Head() {
		a.Wrong++
	}
	names := train.StateNames(j.plan.Stages[stage].Whole)
	for _, t := range link.On(j.plan, of) {
		lie := link.States{Roots: slices.Clone(states.Roots)}
		lie.Roots[step] = slices.Clone(lie.Roots[step])
		lie.Roots[step][slices.Index(names, t.Name())] = canon.Sum("starling/bench/other")
		committed := slices.Clone(segments)
		committed[step+1] = train.StateRoot(step+1, lie.Roots[step])
		a.Denials++
		if h, err := lie.Head(j.plan, stage, of, committed); err == nil && h != x.Head() {
			a.Shown++
		}
	}
}

// states are the roots of the states of a stage after every step.
func (j *job) states(p *played, stage int) (states link.States, err error) {
	task, base, err := j.alone(p, j.plan, stage)
	if err != nil {
		return states, err
	}
	s, err := task.Begin(base, unit, nil)
	if err != nil {
		return states, err
	}
	for range task.Spec.StepsOf(unit) {
		if _, err := s.Advance(); err != nil {
			return states, err
		}
		states.Roots = append(states.Roots, train.Roots(s.Named()))
	}
	return states, nil
}
