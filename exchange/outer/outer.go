// Package outer is the step from one checkpoint to the next: unpack the updates of a round, combine them, and let the
// outer optimizer move the parameters (DiLoCo, Douillard et al. 2023). It is a pure function of the checkpoint and the
// updates, so every member computes it for itself and all get the same bits.
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
	Nesterov = "nesterov" // SGD with Nesterov momentum in PyTorch's form: u = mu*u + d; p -= rate*(d + mu*u)
	SGD      = "sgd"      // p -= rate*d
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
	next := &train.Checkpoint{Round: base.Round + 1, Names: base.Names}
	column := make([]*tensor.Tensor, len(deltas))
	for i, p := range base.Params {
		for j, d := range deltas {
			if len(d) != len(base.Params) {
				return nil, fmt.Errorf("%w: unit %d has %d tensors of %d", ErrRound, j, len(d), len(base.Params))
			}
			column[j] = d[i]
		}
		d, err := aggregate.Combine(s.Exchange.Rule, s.Exchange.Trim, column)
		if err != nil {
			return nil, fmt.Errorf("outer: parameter %q: %w", base.Names[i], err)
		}
		q, u := step(s.Exchange, p, base.Momentum[i], d)
		next.Params, next.Momentum = append(next.Params, q), append(next.Momentum, u)
	}
	return next, nil
}

func step(x train.Exchange, p, u, d *tensor.Tensor) (*tensor.Tensor, *tensor.Tensor) {
	q, v := p.Clone(), u.Clone()
	rate, mu := float32(x.Rate), float32(x.Momentum)
	params, moments := q.F32(), v.F32()
	for i, g := range d.F32() {
		if x.Outer == Nesterov {
			moments[i] = float32(mu*moments[i]) + g
			g += float32(mu * moments[i])
		}
		params[i] -= float32(rate * g)
	}
	return q, v
}
