// Package train is the inner loop: from a checkpoint and a work unit to an end state and the commitment of a worker.
//
// A work unit is a pure function of (specification, checkpoint, round, unit, carried state). In most jobs units pass
// on no state: the moments of the inner optimizer start from zero in every unit, no worker carries anything from
// round to round, and one unit can be re-executed from its checkpoint alone. Every worker that computes a unit gets
// the same bits, and workers join and leave. The package knows nothing of seats, payment or the transport of updates;
// exchange/ combines them.
package train

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/compute/train/replica"
	"github.com/starling-network/starling/compute/train/schedule"
	"github.com/starling-network/starling/compute/train/sharing"
)

// ErrSpec wraps every reason why a specification is refused.
var ErrSpec = errors.New("work specification")

// Spec fixes every bit of a job. Its canonical bytes are what a worker gets; their digest is on chain.
type Spec struct {
	Version  uint32       `cbor:"1,keyasint"` // of this form: 1
	Numerics uint32       `cbor:"2,keyasint"` // version of the numerics, that of the program, too
	Name     string       `cbor:"3,keyasint"`
	Seed     uint64       `cbor:"4,keyasint"`
	Program  canon.Digest `cbor:"5,keyasint"` // of the training step
	Data     canon.Digest `cbor:"6,keyasint"` // of the corpus manifest
	Rounds   uint32       `cbor:"7,keyasint"`
	Steps    uint32       `cbor:"8,keyasint"` // inner steps of a whole unit (H of DiLoCo)
	Segment  uint32       `cbor:"9,keyasint"` // inner steps between two committed state roots
	Units    uint32       `cbor:"10,keyasint"`
	Batch    uint32       `cbor:"11,keyasint"` // sequences of one unit in one inner step
	Length   uint32       `cbor:"12,keyasint"` // tokens of a sequence
	Rate     Rate         `cbor:"13,keyasint"`
	Beta1    float64      `cbor:"14,keyasint"` // of AdamW, for the bias corrections
	Beta2    float64      `cbor:"15,keyasint"`
	Exchange Exchange     `cbor:"16,keyasint"`
	Genesis  canon.Digest `cbor:"17,keyasint"` // state root of the checkpoint that round 0 starts from
	Frozen   canon.Digest `cbor:"18,keyasint"` // FrozenRoot of the tensors that are read and not trained; zero for none

	// Sizes are in how many segments every unit of a round ends, where they differ: made for machines of different
	// speeds. The largest has all segments, and all segments have the same number of steps. nil: every unit is whole.
	Sizes []uint32 `cbor:"19,keyasint,omitempty"`

	// Members compute what a backward pass needs a second time rather than keep it. No bit of a unit depends on that.
	Recompute bool `cbor:"20,keyasint,omitempty"`

	Block uint64 `cbor:"21,keyasint,omitempty"` // as in data.Address

	Rollout *Rollout `cbor:"22,keyasint,omitempty"` // answers are drawn apart; nil: they are not, or the job draws none

	// The model is cut into stages, and a unit is a stage of a replica, see package replica; nil: units have the model.
	Pipeline *replica.Pipeline `cbor:"23,keyasint,omitempty"`

	// The consumer leads the job: it gives the data of each round, a step of one unit, whose program reads all from them.
	Led bool `cbor:"24,keyasint,omitempty"`

	learning *Spec // of the units that learn from the answers of this one
}

// Compile compiles the step of the job, as the specification asks for: that of learning units, where there are others.
func (s *Spec) Compile(step *program.Program, threads int) (*cpu.Exec, error) {
	step = parts.Learning(step)
	if s.Recompute {
		return cpu.CompileLean(step, threads)
	}
	return cpu.Compile(step, threads)
}

// Exchange says how the updates of a round become one checkpoint: see package sharing.
type Exchange = sharing.Exchange

// Split divides the state carried to a unit with the given number of parameters: the part left out, and the moments;
// nil for a part that does not exist.
func Split[T any](x Exchange, params int, from []T) (left, moments []T) {
	return sharing.Split(x, params, from)
}

// PairState is how many tensors of state a checkpoint has for each parameter of a replica in pairs: by how much the
// replica is below the parameter, and its momentum.
const PairState = 2

// GradientScale is what a unit of a job of gradients multiplies its gradient with: it hands in base minus end, which
// loses what is below the last bit of a weight.
const GradientScale = 1024

// Rate is the learning rate schedule over the inner steps of the whole job.
type Rate = schedule.Rate

// Kinds of schedules.
const (
	Cosine   = schedule.Cosine
	Linear   = schedule.Linear
	Constant = schedule.Constant
	WSD      = schedule.WSD
)

// Limits of a specification. They bound what a unit may cost before anything of it is computed.
const (
	maxSteps    = 1 << 16
	maxSegments = 64
	maxBatch    = 1 << 12
	maxLength   = 1 << 17
)

// DecodeSpec reads and checks the canonical bytes of a specification.
func DecodeSpec(b []byte) (*Spec, error) {
	s := new(Spec)
	if err := canon.Unmarshal(b, s); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return s, s.Check()
}

// Encode returns the canonical bytes.
func (s *Spec) Encode() []byte { return canon.MustMarshal(s) }

// Digest names the specification.
func (s *Spec) Digest() canon.Digest { return canon.Sum("starling/spec/1", s.Encode()) }

// Check reports the first reason why the specification cannot be executed.
func (s *Spec) Check() error {
	positive := func(name string, v, limit uint32) error {
		if v < 1 || v > limit {
			return fmt.Errorf("%w: %s is %d, outside 1..%d", ErrSpec, name, v, limit)
		}
		return nil
	}
	unit := func(name string, v, low, high float64) error {
		if !(v >= low && v <= high) {
			return fmt.Errorf("%w: %s is %v, outside %v..%v", ErrSpec, name, v, low, high)
		}
		return nil
	}
	if s.Version != 1 {
		return fmt.Errorf("%w: version %d is not known; this program knows 1", ErrSpec, s.Version)
	}
	if err := kernel.Knows(s.Numerics); err != nil {
		return fmt.Errorf("%w: %w", ErrSpec, err)
	}
	if k := s.Rate.Kind; k != Cosine && k != Linear && k != Constant && k != WSD {
		return fmt.Errorf("%w: schedule %q is not known", ErrSpec, k)
	}
	if r := s.Rate; (r.Kind == WSD) != (r.Decay > 0) || !(r.Decay >= 0 && r.Decay <= 1) {
		return fmt.Errorf("%w: schedule %q falls in a share %v of the steps", ErrSpec, r.Kind, r.Decay)
	}
	return errors.Join(
		positive("rounds", s.Rounds, 1<<20), positive("steps", s.Steps, maxSteps), positive("segment", s.Segment, s.Steps),
		positive("segments", s.Segments(), maxSegments), positive("units", s.Units, 1<<10),
		positive("batch", s.Batch, maxBatch), positive("length", s.Length, maxLength),
		unit("learning rate", s.Rate.Peak, 0, 1e3), unit("learning rate floor", s.Rate.Floor, 0, 1),
		unit("beta1", s.Beta1, 0, 1), unit("beta2", s.Beta2, 0, 1),
		unit("outer learning rate", s.Exchange.Rate, 0, 1e3), unit("outer momentum", s.Exchange.Momentum, 0, 1),
		unit("outer decay", s.Exchange.Decay, 0, 1), unit("outer tau", s.Exchange.Eps, 0, 1e3),
		unit("trim", s.Exchange.Trim, 0, 0.5), unit("overlap", s.Exchange.Overlap, 0, 1),
		unit("feedback", s.Exchange.Feedback, 0, 1), wrap(s.Exchange.Check(s.Units, s.Steps)), s.checkSizes(),
		checkRollout(s), wrap(s.Pipeline.Check(s.Units, s.Steps, s.Segment,
			s.Sizes == nil && s.Rollout == nil && s.Exchange.Separable())),
		unit("outer weight decay", s.Exchange.WeightDecay, 0, 1),
		unit("outer clip", s.Exchange.Clip, 0, 1e9), s.checkGradients(), checkLed(s),
	)
}

// wrap makes a reason why a part of a specification cannot be executed one of the specification.
func wrap(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrSpec, err)
	}
	return err
}

// checkGradients refuses a job of gradients whose units are more than that.
func (s *Spec) checkGradients() error {
	if x := s.Exchange; x.Gradients && (s.Steps != 1 || s.Beta1 != 0 || s.Beta2 != 0) {
		return fmt.Errorf("%w: a round of %d steps with betas %v and %v, where units are gradients: it has one, and no "+
			"moments", ErrSpec, s.Steps, s.Beta1, s.Beta2)
	}
	return nil
}

// checkSizes refuses units of different sizes that are not counted in equal segments, or whose steps are not what is
// exchanged.
func (s *Spec) checkSizes() error {
	switch x := s.Exchange; {
	case s.Sizes == nil:
		return nil
	case len(s.Sizes) == 0 || len(s.Sizes) != int(s.Units) || slices.Max(s.Sizes) != s.Segments() ||
		slices.Min(s.Sizes) < 1:
		return fmt.Errorf("%w: sizes %v of %d units, wanted one for each, from 1 to all %d segments of the largest", ErrSpec,
			s.Sizes, s.Units, s.Segments())
	case s.Steps%max(1, s.Segment) != 0:
		return fmt.Errorf("%w: %d steps in segments of %d, where units have different sizes: wanted equal segments", ErrSpec,
			s.Steps, s.Segment)
	case x.Gradients || x.Pairs > 0:
		return fmt.Errorf("%w: units of different sizes that are gradients, or replicas in pairs: of both each counts the "+
			"same", ErrSpec)
	}
	return nil
}

// Carries reports whether the units of a round pass on a state to the next round.
func (s *Spec) Carries(round uint32) bool {
	return s.Exchange.Carry > 0 && (round+1)%s.Exchange.Carry != 0 && round+1 < s.Rounds
}

// Applied are the rounds whose updates make the checkpoint after a round: that round. Where rounds overlap, the updates
// of a round travel while the next one is trained, and are in the checkpoint after that one; the last round of a group
// waits for its own, too.
func (s *Spec) Applied(round uint32) (rounds []uint32) {
	if s.Exchange.Overlap == 0 {
		return []uint32{round}
	}
	if round > 0 && s.Carries(round-1) {
		rounds = append(rounds, round-1)
	}
	if !s.Carries(round) {
		rounds = append(rounds, round)
	}
	return rounds
}

// Segments is the number of segments of a whole unit; the last may be shorter than Segment.
func (s *Spec) Segments() uint32 {
	if s.Segment == 0 {
		return 0
	}
	return (s.Steps + s.Segment - 1) / s.Segment
}

// SegmentSteps is the number of inner steps of segment k, from 1 to Segments.
func (s *Spec) SegmentSteps(k uint32) uint32 { return min(s.Segment, s.Steps-(k-1)*s.Segment) }

// SegmentsOf is the number of segments of a unit.
func (s *Spec) SegmentsOf(unit uint32) uint32 {
	if uint64(unit) >= uint64(len(s.Sizes)) {
		return s.Segments()
	}
	return s.Sizes[unit]
}

// StepsOf is the number of inner steps of a unit.
func (s *Spec) StepsOf(unit uint32) uint32 { return min(s.SegmentsOf(unit)*s.Segment, s.Steps) }

// StepsTo is the number of inner steps from the start of a unit to the end of its segment k, counted from 1.
func (s *Spec) StepsTo(unit, k uint32) uint32 { return min(k*s.Segment, s.StepsOf(unit)) }

// StepsBefore is the number of inner steps of all units of a round that come before a unit: of all, before number
// Units.
func (s *Spec) StepsBefore(unit uint32) (steps uint64) {
	for u := range unit {
		steps += uint64(s.StepsOf(u))
	}
	return steps
}

// Weight is what the update of a unit counts in the mean of a round: its share of the tokens that they are computed
// from.
func (s *Spec) Weight(unit uint32) float64 {
	if s.Sizes == nil {
		return 1
	}
	return float64(s.SegmentsOf(unit))
}

// Address is where the batch of an inner step (from 0) of a unit lies in the corpus. Where units have different sizes,
// those of a round lie one after the other, so that none of it is left out. A unit that learns from answers has the
// batch that they were drawn to.
func (s *Spec) Address(round, unit, step uint32) data.Address {
	switch {
	case s.learning != nil:
		unit, step = s.learning.Apart().Learns(unit)
		return address(s.learning, round, unit, step)
	case s.Rollout != nil:
		round = s.Apart().Policy(round)
	}
	return address(s, round, unit, step)
}

func address(s *Spec, round, unit, step uint32) data.Address {
	n := s.Pipeline.Stages()
	a := data.Address{Seed: s.Seed, Round: round, Unit: unit / n, Step: step, Units: s.Units / n, StepsPerRound: s.Steps,
		Batch: s.Batch, Block: s.Block}
	if s.Sizes != nil {
		a.Unit, a.Step, a.Units, a.StepsPerRound = 0, uint32(s.StepsBefore(unit))+step, 1, uint32(s.StepsBefore(s.Units))
	}
	return a
}

// Scalars are the scalar inputs of an inner step of a unit: the learning rate, and the bias corrections 1/(1-beta^t) of
// AdamW (Kingma and Ba 2015, section 2), t counted from 1 where the moments begin with zero: in the unit, or in the
// first of a group.
func (s *Spec) Scalars(round, unit, step uint32) (lr, c1, c2 float32) {
	lr = GradientScale
	if !s.Exchange.Gradients {
		lr = s.Rate.At(round*s.Steps+step, s.Rounds*s.Steps)
	}
	t := step + 1
	if s.Exchange.Moments {
		t += round % s.Exchange.Carry * s.StepsOf(unit)
	}
	return lr, schedule.Correction(s.Beta1, t), schedule.Correction(s.Beta2, t)
}

// OuterScalars are what Scalars are, for an outer optimizer that takes the step of a round of gradients.
func (s *Spec) OuterScalars(round uint32) (lr, c1, c2 float32) {
	x := s.Exchange
	lr = float32(x.Rate) * s.Rate.At(round, s.Rounds)
	return lr, schedule.Correction(x.Momentum, round+1), schedule.Correction(x.Decay, round+1)
}

// diceStream is the random stream of the key of the dice of a step: those after it are of the places in a program, and
// those of initial weights and of the order of data are below.
const diceStream = 1 << 62

// Dice are the key from which a step of a unit draws the elements that it drops: seed, stream, and a first index that
// is at least 2^32 away from that of any other of the first 2^32 steps.
func (s *Spec) Dice(round, unit, step uint32) *tensor.Tensor {
	if s.learning != nil {
		unit, step = s.learning.Apart().Learns(unit)
		s = s.learning
	}
	n := s.Pipeline.Stages()
	place := (uint64(round)*uint64(s.Units/n)+uint64(unit/n))*uint64(s.Steps) + uint64(step)
	t := tensor.New(tensor.Make(tensor.Int64, 3))
	copy(tensor.As[int64](t.Bytes()), []int64{int64(s.Seed), diceStream, int64(place << 32)})
	return t
}
