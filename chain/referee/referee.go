// Package referee answers the last question of a dispute: every validator, as a Referee, recomputes one part of a tile
// of one operator's output with the portable kernels, from those leaves of the operands that it needs, proven under
// digests that both parties agree on. The parties show them with chain/referee/witness, in the form of
// chain/referee/evidence.
//
// How the parties get to that question is protocol/dispute; what follows from the answer is protocol/run and reward.
package referee

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/question"
	"github.com/starling-network/starling/compute/admit"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/work"
)

// ErrOpening is for bytes that are not the specification and the program of the job.
var ErrOpening = errors.New("referee: this does not open the job")

// MaxOpening is the largest size of an opening, in bytes.
const MaxOpening = 2 << 20

// MaxOperators is the largest number of operators of a step.
const MaxOperators = 1 << 15

// limits of a program bound what a challenge costs the chain.
var limits = program.Limits{MaxOps: MaxOperators, MaxBytes: MaxOpening, MaxMemory: 1 << 50, MaxFlops: 1e19}

// opening is what an order shows of a job, so that the chain knows the shape of its units.
type opening struct {
	Spec     []byte `cbor:"1,keyasint"`
	Program  []byte `cbor:"2,keyasint"`
	Manifest []byte `cbor:"3,keyasint"` // of the corpus
}

// Opening returns the bytes that Open reads. There is one opening of each specification.
func Opening(s *train.Spec, p *program.Program, m data.Manifest) []byte {
	return canon.MustMarshal(opening{Spec: s.Encode(), Program: p.Encode(), Manifest: m.Encode()})
}

// Referee judges disputes about the units of one job.
type Referee struct {
	spec  *train.Spec
	step  *program.Program
	names []string // of the parameters
	outer int      // tensors of state for each, of the outer optimizer
	index map[string]int

	bytes int // of the opening

	// of the units of a job whose answers are drawn apart, see train.Rollout; nil: there is one kind of units
	learn, draw *Referee
	whole       *Referee // of which this is learn, draw or a stage; nil: of none

	// of the units of each stage of a job whose units are stages of replicas; nil: they are not
	stages []*Referee
	plan   *stages.Plan // of a stage; nil: of none
	stage  int

	divisions divisions
}

// Open reads an opening from anybody; spec is the digest in the terms of the run. The error wraps ErrOpening, or
// market.ErrNumerics if the work does not have the given version of the numerics; 0: it may have any that this build
// computes. Decidable checks that all questions about the work can be answered.
func Open(spec canon.Digest, b []byte, numerics uint32) (*Referee, error) {
	fail := func(err error) (*Referee, error) { return nil, fmt.Errorf("%w: %w", ErrOpening, err) }
	if len(b) > MaxOpening {
		return fail(fmt.Errorf("%w: %d bytes, at most %d are taken", evidence.ErrTooLarge, len(b), MaxOpening))
	}
	var o opening
	if err := canon.Unmarshal(b, &o); err != nil {
		return fail(err)
	}
	if numerics > 0 {
		if is, err := version(o.Spec); err != nil || is != numerics {
			return nil, fmt.Errorf("%w: version %d, and the work has version %d", market.ErrNumerics, numerics, is)
		}
	}
	s, err := train.DecodeSpec(o.Spec)
	if err != nil {
		return fail(err)
	}
	if d := s.Digest(); d != spec {
		return fail(fmt.Errorf("the work specification is %s, that of the run is %s", d.Short(), spec.Short()))
	}
	if err := outer.Check(s.Exchange); err != nil {
		return fail(err)
	}
	p, err := admit.Decode(o.Program, limits)
	if err != nil {
		return fail(err)
	}
	if err := train.CheckProgram(s, p); err != nil {
		return fail(err)
	}
	if err := corpusFits(s, o.Manifest); err != nil {
		return fail(err)
	}
	r := newReferee(s, p)
	r.bytes = len(b)
	return r, nil
}

// version reads which version of the numerics a specification has, whatever else is in it: the outcome of an order in
// another version than is in force is the same on validators that compute that version and on those that do not.
func version(spec []byte) (uint32, error) {
	var keys map[uint64]any
	if err := canon.Unmarshal(spec, &keys); err != nil {
		return 0, err
	}
	v, _ := keys[2].(uint64) // see train.Spec
	return uint32(min(v, math.MaxUint32)), nil
}

func newReferee(s *train.Spec, p *program.Program) *Referee {
	r := ofUnits(s, p)
	if s.Rollout != nil {
		r.learn, r.draw = ofUnits(s, train.StepOf(s, p, 0)), ofUnits(s.Of(s.Units), train.StepOf(s, p, s.Units))
		r.learn.whole, r.draw.whole = r, r
	}
	if s.Pipeline != nil {
		divide(r)
	}
	return r
}

// divide makes the judges of the stages of a step, which CheckProgram has cut.
func divide(r *Referee) {
	plan, err := stages.Cut(r.step, r.spec.Pipeline.Cuts())
	if err != nil {
		return // no unit of it can be judged
	}
	for i, st := range plan.Stages {
		of := ofUnits(r.spec, st.Whole)
		of.whole, of.plan, of.stage = r, plan, i
		r.stages = append(r.stages, of)
	}
}

// OfStage judges units of a stage of a model, whose step is stages.Stage.Whole. The checkpoints of its claims are those
// of the parameters that the stage holds. Values that a stage has received are no question of its dispute: package
// handed shows where it has signed others.
func OfStage(s *train.Spec, p *program.Program) *Referee { return ofUnits(s, p) }

// judgeOf judges a unit.
func judgeOf(r *Referee, unit uint32) *Referee {
	switch {
	case len(r.stages) > 0:
		return r.stages[int(unit)%len(r.stages)]
	case r.learn == nil:
		return r
	case unit < r.spec.Units:
		return r.learn
	}
	return r.draw
}

// ofUnits judges units that execute a program.
func ofUnits(s *train.Spec, p *program.Program) *Referee {
	r := &Referee{spec: s, step: p, names: train.Params(p), index: map[string]int{},
		divisions: divisions{step: p}}
	if n, err := outer.State(s.Exchange); err == nil {
		r.outer = n
	}
	for i, n := range train.StateNames(p) {
		r.index[n] = i
	}
	return r
}

// Config is the dispute of a challenger about a unit of a job, in which a party has some blocks for a move.
func (r *Referee) Config(job string, d work.AuditTarget, challenger string, blocks int64) (dispute.Config, error) {
	drawn := r.spec.Rollout != nil && d.Index >= r.spec.Units
	r = judgeOf(r, d.Index)
	c := dispute.Config{
		Job: job, Round: d.Round, Unit: d.Index, Attempt: d.Attempt, Asserter: d.Worker, Challenger: challenger,
		Base: d.Base.Root, Segments: d.Commit.Segments, Update: d.Commit.Update, From: d.Starts(d.Index).Root,
		Carried:   d.Commit.HandedState.Root,
		Operators: uint32(len(r.step.Ops)), Parameters: uint32(len(r.names)), MoveBlocks: blocks, NoUpdate: drawn,
	}
	if n := uint32(len(train.CarriedNames(r.spec.Exchange, r.step))); n != c.Parameters {
		c.StateTensors = n
	}
	if r.plan != nil {
		for _, l := range d.Commit.Links {
			c.Links = append(c.Links, l.Chain)
		}
		c.StateTensors = uint32(len(c.Links))
	}
	for k := range r.spec.SegmentsOf(d.Index) {
		c.Steps = append(c.Steps, r.spec.SegmentSteps(k+1))
	}
	return c, nil
}

// Parts implements dispute.Referee.
func (r *Referee) Parts(c dispute.Claim) uint64 {
	r = judgeOf(r, c.Unit)
	return question.Parts(r.spec, r.step, c, r.divisions.of)
}

// divisions remembers the divisions of the operators that a program was asked about.
type divisions struct {
	step  *program.Program
	mu    sync.Mutex
	known map[int]recompute.Division
}

// of returns the division of operator i.
func (d *divisions) of(i int) (recompute.Division, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found, ok := d.known[i]; ok {
		return found, nil
	}
	found, err := division.Of(d.step, i)
	if err == nil {
		if d.known == nil {
			d.known = map[int]recompute.Division{}
		}
		d.known[i] = found
	}
	return found, err
}
