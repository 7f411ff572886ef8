// Package outer is the step from one checkpoint to the next: unpack the updates of a round, combine them, and let the
// outer optimizer move the parameters (DiLoCo, Douillard et al. 2023). It is a pure function of the checkpoint and the
// updates, so every member computes it for itself and all get the same bits.
//
// Beside it stand the strategies that exchange something else, at other times or with other partners, as state machines
// of a few lines each: fragments and delays (Schedule, Fragment), every step (DeMo, Sparta), on arrival
// (DelayedNesterov), in pairs (Gossip). Whoever runs one holds its state and passes it in. The package moves no bytes,
// and knows no clock: a step is counted, not timed.
package outer

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

// Names of outer optimizers, as in a work specification.
const (
	Nesterov = "nesterov" // Momentum with the rate and momentum of the specification
	SGD      = "sgd"      // Descent with its rate
)

// ErrRound is returned when the updates given are not those of one round.
var ErrRound = errors.New("outer: not the updates of one round")

// Check reports why the exchange part of a specification cannot be carried out.
func Check(x train.Exchange) error {
	switch {
	case !codec.Known(x.Codec):
		return fmt.Errorf("outer: codec %q is not known", x.Codec)
	case !aggregate.Known(x.Rule):
		return fmt.Errorf("outer: aggregation rule %q is not known", x.Rule)
	case x.Outer != Nesterov && x.Outer != SGD:
		return fmt.Errorf("outer: optimizer %q is not known", x.Outer)
	}
	return nil
}

// Commit turns a finished unit into its update.
func Commit(s *train.Spec, round, unit uint32, r *train.Result) (*codec.Update, error) {
	return codec.Pack(s.Exchange.Codec, round, unit, r.Delta)
}

// Expect is what the update of a unit of the round after base must look like.
func Expect(s *train.Spec, base *train.Checkpoint, unit uint32) codec.Expect {
	shapes := make([]tensor.Shape, len(base.Params))
	for i, p := range base.Params {
		shapes[i] = p.Shape
	}
	return codec.Expect{Round: base.Round, Unit: unit, Codec: s.Exchange.Codec, Shapes: shapes}
}

// Advance returns the checkpoint after base. deltas holds the unpacked update of every unit, in unit order.
func Advance(s *train.Spec, base *train.Checkpoint, deltas [][]*tensor.Tensor) (*train.Checkpoint, error) {
	if len(deltas) != int(s.Units) {
		return nil, fmt.Errorf("%w: %d of %d", ErrRound, len(deltas), s.Units)
	}
	rule, ok := aggregate.ByName(s.Exchange.Rule, s.Exchange.Trim)
	if !ok {
		return nil, fmt.Errorf("outer: aggregation rule %q is not known", s.Exchange.Rule)
	}
	updates := make([]aggregate.Update, len(deltas))
	for i, d := range deltas {
		if len(d) != len(base.Params) {
			return nil, fmt.Errorf("%w: unit %d has %d tensors of %d", ErrRound, i, len(d), len(base.Params))
		}
		updates[i] = aggregate.Update{Unit: uint32(i), Weight: 1, Tensors: d}
	}
	combined, err := aggregate.Combine(rule, updates)
	if err != nil {
		return nil, fmt.Errorf("outer: %w", err)
	}
	next := &train.Checkpoint{Round: base.Round + 1, Names: base.Names}
	optimizer := optimizerOf(s.Exchange)
	for i, p := range base.Params {
		if !p.Shape.Equal(combined[i].Shape) {
			return nil, fmt.Errorf("%w: %q is %s and its update %s", ErrRound, base.Names[i], p.Shape, combined[i].Shape)
		}
		q, u := p.Clone(), base.Momentum[i].Clone()
		optimizer.Step(q.F32(), combined[i].F32(), [][]float32{u.F32()})
		next.Params, next.Momentum = append(next.Params, q), append(next.Momentum, u)
	}
	return next, nil
}

func optimizerOf(x train.Exchange) Optimizer {
	if x.Outer == Nesterov {
		return Momentum{Rate: float32(x.Rate), Decay: float32(x.Momentum)}
	}
	return Descent{Rate: float32(x.Rate)}
}
