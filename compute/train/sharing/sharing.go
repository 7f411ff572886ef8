// Package sharing is the part of a work specification that says how the updates of a round become one checkpoint, and
// which state units pass on. It carries nothing out: exchange/ does.
package sharing

import (
	"fmt"
	"slices"
)

// Exchange says how the updates of a round become one checkpoint. It is carried out by exchange/.
type Exchange struct {
	Codec string  `cbor:"1,keyasint"` // a name of exchange/codec
	Rule  string  `cbor:"2,keyasint"` // a name of exchange/aggregate
	Trim  float64 `cbor:"3,keyasint"` // share cut off at each end by the trimmed mean
	Outer string  `cbor:"4,keyasint"` // a name of exchange/outer
	Rate  float64 `cbor:"5,keyasint"`
	// of outer.Nesterov; of outer.Adam and outer.Yogi, the decay of the first moment
	Momentum float64 `cbor:"6,keyasint"`
	Decay    float64 `cbor:"7,keyasint"` // of the second moment
	Eps      float64 `cbor:"8,keyasint"` // what is added to its root
	// decay of the part left out of the update of a unit, which is added to the next update; 0: the part is lost
	Feedback float64 `cbor:"9,keyasint,omitempty"`
	// consecutive rounds in which units pass on their state, the first of which begins without one; 0 without feedback
	Carry uint32 `cbor:"10,keyasint,omitempty"`

	// Of an outer optimizer that takes the steps of Spec.Rate itself: a round is one of them, and its units are gradients.
	Gradients   bool    `cbor:"11,keyasint,omitempty"`
	WeightDecay float64 `cbor:"12,keyasint,omitempty"` // decoupled weight decay of tensors of two or more dimensions
	Clip        float64 `cbor:"13,keyasint,omitempty"` // largest norm of the combined gradient; 0: any

	// For a job whose units train replicas of their own: a unit begins from the checkpoint less the carried state, and
	// passes on the part that its update left out. At most one of Pick and Fragments is given, and the last round of a
	// group exchanges everything.
	SampleEvery uint32 `cbor:"14,keyasint,omitempty"` // the other rounds exchange one in Pick elements of every parameter
	// the other rounds exchange one of this number of fragments of the layers, in turn
	Fragments uint32 `cbor:"15,keyasint,omitempty"`

	// For a job of Pairs replicas, one a unit, that average in pairs. They are in the checkpoint.
	Pairs    uint32 `cbor:"16,keyasint,omitempty"`
	Topology string `cbor:"17,keyasint,omitempty"` // the pairs of replicas, by a name of exchange/outer

	// Units pass on the moments of the inner optimizer, and the count of steps that corrects their bias.
	Moments bool `cbor:"19,keyasint,omitempty"`

	// For a job of Policies models, one a unit, each of which its unit alone trains: the checkpoint has all of them.
	Policies uint32 `cbor:"21,keyasint,omitempty"`

	// Transform of the elements of a parameter before they are compressed: a name of exchange/codec. Error feedback and
	// the rule apply to the transformed elements; the result of the rule is transformed back. Not for replicas.
	Transform string `cbor:"20,keyasint,omitempty"`

	// For a job whose rounds overlap, see Applied: the share of its own progress in a round with which a unit continues
	// in the next, above 0 and up to 1. The unit begins below the checkpoint by the carried state, sends its own
	// difference, and passes on that share of it. With Fragments this applies to a fragment that was sent, see
	// UnderWay; it excludes Pick. 0: rounds do not overlap.
	Overlap float64 `cbor:"18,keyasint,omitempty"`
}

// Replicas reports whether units continue from their own last state, and not from the parameters of the checkpoint
// alone.
func (x Exchange) Replicas() bool { return x.WorkersDiffer() || x.Pairs > 0 }

// StateDependsOnCarry reports whether the state that a unit begins with depends on the carried state. The part that
// error feedback left out is added to the update, and to no state.
func (x Exchange) StateDependsOnCarry() bool { return x.WorkersDiffer() || x.Moments }

// CarriesResidual reports whether units pass on a tensor for every parameter besides moments: the part that their
// update left out, or their difference to the checkpoint.
func (x Exchange) CarriesResidual() bool { return x.Feedback > 0 || x.WorkersDiffer() }

// CarriesState reports whether a unit passes on any of the tensors that CarriedNames names.
func (x Exchange) CarriesState() bool { return x.CarriesResidual() || x.Moments }

// Split divides the state carried to a unit with the given number of parameters: the part left out, and the moments;
// nil for a part that does not exist.
func Split[T any](x Exchange, params int, from []T) (left, moments []T) {
	switch {
	case len(from) < params || !x.Moments:
		return from, nil
	case !x.CarriesResidual():
		return nil, from
	}
	return from[:params], from[params:]
}

// Separable reports whether units pass on no state and send all of their parameters as they are, each of which is
// combined and moved by itself: with these rules of exchange/aggregate the result for a parameter follows from the
// updates of it.
func (x Exchange) Separable() bool {
	return !x.CarriesState() && !x.Replicas() && x.Policies == 0 && !x.Gradients && x.Transform == "" &&
		slices.Contains([]string{"mean", "trimmed_mean", "median", "contributor_mean"}, x.Rule)
}

// WorkersDiffer reports whether units begin from the carried state.
func (x Exchange) WorkersDiffer() bool { return x.SampleEvery > 0 || x.Fragments > 0 || x.Overlap > 0 }

// maxCarry is the largest number of rounds through which units may pass on their state: a member that lacks the state
// executes as many units, from checkpoints that members keep until then.
const maxCarry = 256

// maxMomentSteps is through how many steps moments may last. The correction of their bias multiplies as often, in every
// question of a dispute about it.
const maxMomentSteps = 1 << 20

// Limits of the exchanged part in rounds of replicas.
const (
	maxSampleEvery = 1 << 12
	maxFragments   = 1 << 8
	maxPairs       = 16
)

// Check reports why units that exchange updates so cannot be carried out, in rounds of a number of units of a number of
// inner steps.
func (x Exchange) Check(units, steps uint32) error {
	if (x.Carry > 1) != x.CarriesState() || x.Carry == 1 || x.Carry > maxCarry {
		return fmt.Errorf("feedback %v, moments that last, or replicas, through %d rounds, wanted both or none, and 2 "+
			"to %d rounds", x.Feedback, x.Carry, maxCarry)
	}
	if uint64(x.Carry)*uint64(steps) > maxMomentSteps && x.Moments {
		return fmt.Errorf("moments that last through %d rounds of %d steps, at most %d steps in all", x.Carry,
			steps, maxMomentSteps)
	}
	if x.Moments && x.Gradients {
		return fmt.Errorf("moments that last of units that are gradients, which have none")
	}
	if x.Pairs > 0 && (x.Pairs != units || x.Pairs > maxPairs || x.Carry > 0 || x.Gradients) || x.Pairs == 0 &&
		x.Topology != "" {
		return fmt.Errorf("%d replicas in pairs of %d units, wanted one a unit, at most %d, that carry no state and "+
			"are no gradients", x.Pairs, units, maxPairs)
	}
	if x.Transform != "" && x.Replicas() {
		return fmt.Errorf("replicas whose updates are transformed by %q: a replica starts from its end state, "+
			"which has no frequencies", x.Transform)
	}
	if !x.WorkersDiffer() {
		return nil
	}
	given := 0
	for _, is := range []bool{x.SampleEvery > 0, x.Fragments > 0 || x.Overlap > 0, x.Feedback > 0, x.Gradients} {
		if is {
			given++
		}
	}
	if given > 1 || x.SampleEvery == 1 || x.SampleEvery > maxSampleEvery || x.Fragments == 1 ||
		x.Fragments > maxFragments {
		return fmt.Errorf("replicas that exchange one of %d elements and one of %d fragments, with an overlap of %v: "+
			"wanted elements, 2 to %d, or fragments, 2 to %d, that may overlap, and neither feedback nor gradients",
			x.SampleEvery, x.Fragments, x.Overlap, maxSampleEvery, maxFragments)
	}
	return nil
}
