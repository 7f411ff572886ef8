package train

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/compute/train/swarm"
)

// Rollout says which answers units learn from, in a job that draws them apart: see parts.Rounds. Package parts divides
// its program.
type Rollout struct {
	Staleness uint32 `cbor:"1,keyasint"` // by how many rounds their policy is older, at most

	// Units learn from the answers to the prompts of others, too: see parts.Rounds.
	Shared bool `cbor:"2,keyasint,omitempty"`
}

// Apart are the rounds of a job whose answers are drawn apart; the zero value of any other.
func (s *Spec) Apart() parts.Rounds {
	if s.Rollout == nil {
		return parts.Rounds{}
	}
	return parts.Rounds{Units: s.Units, Steps: s.Steps, Rounds: s.Rounds, Staleness: s.Rollout.Staleness,
		Shared: s.Rollout.Shared}
}

// DependsOnCarry reports whether the first state of a unit depends on that of others.
func DependsOnCarry(s *Spec) bool { return IsGiven(s) || s.Exchange.StateDependsOnCarry() }

// IsGiven reports whether units begin with tensors that other units, or the consumer, gave them.
func IsGiven(s *Spec) bool { return s.Rollout != nil || s.Led }

// checkLed refuses a job that its consumer leads whose round is more than one step of one unit.
func checkLed(s *Spec) error {
	x := s.Exchange
	if s.Led && (s.Units != 1 || s.Steps != 1 || s.Rollout != nil || s.Pipeline != nil || s.Sizes != nil ||
		x.CarriesState() || x.Replicas() || x.Policies > 0 || x.Gradients || x.Transform != "") {
		return wrap(errors.New("a round that the consumer leads is one step of one unit that passes on no state"))
	}
	return nil
}

// checkRollout refuses answers drawn apart for units that differ in more than their data, or their model.
func checkRollout(s *Spec) error {
	x := s.Exchange
	err := swarm.Check(x.Policies, s.Apart(), x.Gradients || x.Transform != "")
	if s.Rollout != nil && err == nil {
		err = s.Apart().Check(s.Sizes == nil && !x.CarriesState() && !x.Replicas())
	}
	return wrap(err)
}

type kinds struct {
	learn, draw *program.Program
	spec        *Spec     // of drawing units
	exec        *cpu.Exec // of draw

	plan  *stages.Plan // of a job in stages, which has no others
	execs []*cpu.Exec  // of the programs of its stages
}

// Divide makes the tasks of the kinds of units, if there are several: two, or one for each stage. It is called once,
// before the task is used.
func (t *Task) Divide() error {
	switch {
	case t.Spec.Pipeline != nil:
		return t.cut()
	case t.Spec.Rollout == nil:
		return nil
	}
	p := &kinds{learn: parts.Learning(t.Step), draw: parts.Drawing(t.Step), spec: ofDrawing(t.Spec)}
	var err error
	if p.exec, err = cpu.Compile(p.draw, t.Exec.Threads()); err != nil {
		return fmt.Errorf("train: what draws: %w", err)
	}
	t.kinds = p
	return nil
}

// ofDrawing is the specification of drawing units: of one step, which pass on a part of their last state.
func ofDrawing(s *Spec) *Spec {
	d := *s
	d.learning, d.Rollout = s, nil
	d.Steps, d.Segment, d.Units = 1, 1, s.Units+s.Apart().Drawing()
	d.Rounds, d.Exchange.Moments, d.Exchange.Carry = math.MaxUint32, true, math.MaxUint32
	return &d
}

// Of is the specification of a unit.
func (s *Spec) Of(unit uint32) *Spec {
	if s.Rollout == nil || unit < s.Units {
		return s
	}
	return ofDrawing(s)
}

// StepOf is the part of a program that a unit of the job executes.
func StepOf(s *Spec, p *program.Program, unit uint32) *program.Program {
	switch {
	case s.Rollout == nil:
		return p
	case unit < s.Units:
		return parts.Learning(p)
	}
	return parts.Drawing(p)
}

// Of is the task of a unit. It shares all with the task but the program.
func (t *Task) Of(unit uint32) *Task {
	if t.kinds == nil {
		return t
	}
	of := *t
	of.kinds, of.Device, of.whole = nil, nil, t
	switch plan := t.kinds.plan; {
	case plan != nil:
		_, stage := t.Spec.Pipeline.Of(unit)
		of.Step, of.Exec = plan.Stages[stage].Whole, t.kinds.execs[stage]
	case unit >= t.Spec.Units:
		of.Spec, of.Step, of.Exec = t.kinds.spec, t.kinds.draw, t.kinds.exec
	default:
		of.Step = t.kinds.learn
	}
	of.Frozen, of.FrozenRoots = nil, nil
	all, roots := Frozen(t.Step), t.FrozenRoots
	for _, n := range Frozen(of.Step) {
		i := slices.Index(all, n)
		of.Frozen = append(of.Frozen, t.Frozen[i])
		if roots != nil {
			of.FrozenRoots = append(of.FrozenRoots, roots[i])
		}
	}
	return &of
}

// Draw computes a unit that draws, and returns what it passes on.
func (t *Task) Draw(base *Checkpoint, unit uint32, observe func(Progress) error) ([]*tensor.Tensor, error) {
	r, err := t.Resume(base, unit, nil, false, nil, observe)
	if err != nil {
		return nil, err
	}
	return r.End[len(r.End)-len(parts.HandedOn(t.Step)):], nil
}

// AllFrozenRoots are those of the whole job.
func (t *Task) AllFrozenRoots() []canon.Digest {
	return cmp.Or(t.whole, t).RootsOfFrozen()
}

// begun are the tensors that a state begins with besides the parameters: moments, given answers, or zeros.
func begun(names []string, shapes map[string]tensor.Shape, moments, answers []*tensor.Tensor, own bool,
	in map[string]*tensor.Tensor) {
	for i, n := range names {
		_, of, earlier := optimizer.EarlierOf(n)
		switch {
		case parts.IsGiven(n):
			in[n], answers = answers[0].Clone(), answers[1:]
		case earlier:
			in[n] = in[Param+of].Clone()
		case moments == nil:
			in[n] = tensor.New(shapes[n])
		default:
			if in[n] = moments[i]; !own {
				in[n] = moments[i].Clone()
			}
		}
	}
}
