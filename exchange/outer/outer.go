// Package outer is the step from one checkpoint to the next: unpack the updates of a round, combine them, and let the
// outer optimizer move the parameters (DiLoCo, Douillard et al. 2023). It is a pure function of the checkpoint and the
// updates, so every member computes it for itself and all get the same bits.
//
// A ParamStep says which part of a parameter is exchanged in a round, and which optimizer moves it: all of it in most
// jobs, and a part where units train replicas, alone or in pairs (Gossip). The package moves no bytes, and has no
// clock: a step is counted, not timed.
package outer

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/transform"
	"github.com/starling-network/starling/exchange/update"
)

// Names of outer optimizers, as in a work specification.
const (
	Nesterov = "nesterov" // Momentum with the rate and momentum of the specification
	SGD      = "sgd"      // GradientDescent with its rate
	Adam     = "adam"     // Adaptive with its rate, momentum, decay and epsilon: FedAdam
	Yogi     = "yogi"     // the same, as FedYogi

	// Of jobs whose units are gradients.
	DecoupledAdam = "adamw" // AdamW, at the rates of the specification's schedule: synchronous data-parallel training
	SignSGD       = "sign"  // Direction, at the same rates

	// Of jobs whose units are replicas that average in pairs.
	PairwiseGossip = "pairs" // Gossip, with the rate as its pull
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
	}
	if err := transform.Check(x.Transform); err != nil {
		return err
	}
	switch {
	case x.Pairs > 0:
		return checkPairs(x)
	case x.Policies > 0:
		return checkPolicies(x)
	}
	if err := checkGradients(x); err != nil {
		return err
	}
	_, err := NewOptimizer(x)
	return err
}

// NewOptimizer returns the optimizer of a specification. Optimizers for gradients are returned without the values that
// change every round, such as the rate.
func NewOptimizer(x train.Exchange) (Optimizer, error) {
	rate, momentum := float32(x.Rate), float32(x.Momentum)
	switch x.Outer {
	case Nesterov:
		return Momentum{Rate: rate, Decay: momentum}, nil
	case SGD:
		return GradientDescent{Rate: rate}, nil
	case Adam, Yogi:
		return Adaptive{Rate: rate, Beta1: momentum, Beta2: float32(x.Decay), Tau: float32(x.Eps), Yogi: x.Outer == Yogi}, nil
	case DecoupledAdam:
		return AdamW{Beta1: momentum, Beta2: float32(x.Decay), Eps: float32(x.Eps)}, nil
	case SignSGD:
		return Direction{}, nil
	}
	return nil, fmt.Errorf("outer: optimizer %q is not known", x.Outer)
}

// Genesis is the checkpoint before the first round: the given parameters, and the optimizer's state of zeros. Each
// model of a swarm has these parameters.
func Genesis(x train.Exchange, names []string, params map[string]*tensor.Tensor) (*train.Checkpoint, error) {
	if x.Policies > 0 {
		return genesisOfPolicies(x, names, params)
	}
	state, err := State(x)
	if err != nil {
		return nil, err
	}
	return train.Genesis(names, params, state)
}

// Commit turns a finished unit into its update, and into its carried state for the same unit of the next round: the
// part that the update leaves out, and its moments, as train.Split has them; nil for nothing. names are those of the
// parameters, and from is the state that was carried to this unit. An update that cannot be made, because the carried
// state makes it infinite, is an error that wraps codec.ErrPayload.
func Commit(s *train.Spec, names []string, round, unit uint32, r *train.Result,
	from []*tensor.Tensor) (u *update.Update, on []*tensor.Tensor, err error) {
	x := s.Exchange
	delta := make([]*tensor.Tensor, len(r.Delta))
	for i, d := range r.Delta {
		delta[i] = transform.Apply(x.Transform, d)
	}
	left, _ := train.Split(x, len(names), from)
	if x.Replicas() { // the unit began with it
		left = nil
	}
	p, err := parcel(s, names, round)
	if err != nil {
		return nil, nil, err
	}
	if !x.CarriesResidual() && x.Pairs == 0 {
		u, err = update.Pack(x.Codec, round, unit, delta)
	} else {
		u, on, err = p.Pack(round, unit, delta, left)
	}
	if err != nil || !s.Carries(round) {
		return u, nil, err
	}
	if x.Overlap > 0 {
		on = nil
		for i, d := range r.Delta {
			kept := d.Clone()
			if s.Sends(round, names[i]) {
				GoOn(x, kept.F32())
			}
			on = append(on, kept)
		}
	}
	if x.Moments {
		on = append(on, r.End[len(names):]...)
	}
	return u, on, nil
}

// GoOn computes the carried state of a unit where rounds overlap, in place: a share (Exchange.Overlap) of its
// progress, before compression.
func GoOn(x train.Exchange, progress []float32) {
	share := float32(x.Overlap)
	for i, p := range progress {
		progress[i] = share * p
	}
}

// parcel returns how the updates of a round are packed.
func parcel(s *train.Spec, names []string, round uint32) (update.PackOptions, error) {
	p := update.PackOptions{Name: s.Exchange.Codec, Decay: float32(s.Exchange.Feedback)}
	if !s.Exchange.Replicas() {
		return p, nil
	}
	turns, err := Turns(s, names, round)
	for _, t := range turns {
		p.Each = append(p.Each, t.Codec)
	}
	return p, err
}

// Unpack restores the pseudo-gradient of a unit of a round from its update, which must have the given root; zero skips
// that. Where updates are transformed it is the transformed one, which has the same norms and angles. base is any
// checkpoint of the job. Errors about the bytes wrap codec.ErrPayload.
func Unpack(s *train.Spec, base *train.Checkpoint, round, unit uint32, root canon.Digest,
	b []byte) ([]*tensor.Tensor, error) {
	if s.Pipeline != nil {
		base = train.ModelOf(s, base, unit)
	}
	shapes := make([]tensor.Shape, len(base.Params))
	for i, p := range base.Params {
		shapes[i] = p.Shape
	}
	p, err := parcel(s, base.Names, round)
	if err != nil {
		return nil, err
	}
	_, delta, err := update.Unpack(b, update.Expect{Round: round, Unit: unit, PackOptions: p, Shapes: shapes, Root: root})
	if err != nil {
		return nil, err
	}
	for _, d := range delta {
		if err := transform.CheckResult(s.Exchange.Transform, d); err != nil {
			return nil, err
		}
	}
	return delta, nil
}

// Combine combines the updates of a round by the rule of a specification: one tensor for each parameter, which the
// outer optimizer takes for a gradient, once it is transformed back where updates are transformed. deltas holds the
// unpacked update of every unit, in unit order.
func Combine(s *train.Spec, deltas [][]*tensor.Tensor) ([]*tensor.Tensor, error) {
	if len(deltas) != int(s.Units) {
		return nil, fmt.Errorf("%w: %d of %d", ErrRound, len(deltas), s.Units)
	}
	rule, ok := aggregate.ByName(s.Exchange.Rule, s.Exchange.Trim)
	if !ok {
		return nil, fmt.Errorf("outer: aggregation rule %q is not known", s.Exchange.Rule)
	}
	updates := make([]aggregate.Update, len(deltas))
	for i, d := range deltas {
		updates[i] = aggregate.Update{Unit: uint32(i), Weight: s.Weight(uint32(i)), Tensors: d}
	}
	combined, err := aggregate.Combine(rule, updates)
	if err != nil {
		return nil, fmt.Errorf("outer: %w", err)
	}
	return combined, nil
}

// Advance returns the checkpoint after base. deltas holds the unpacked updates that make it, of every round of
// train.Spec.Applied in order, and of each in unit order. base and the result may share tensors.
func Advance(s *train.Spec, base *train.Checkpoint, deltas [][]*tensor.Tensor) (*train.Checkpoint, error) {
	own := make([][]*tensor.Tensor, len(deltas))
	for i, d := range deltas {
		own[i] = slices.Clone(d)
	}
	return Consume(s, base, own, nil)
}

// Consume is Advance for a caller that no longer needs the deltas: it releases each of their tensors as soon as that
// is combined. lay, if it is not nil, is given each tensor of the result, which is what it returns.
func Consume(s *train.Spec, base *train.Checkpoint, deltas [][]*tensor.Tensor,
	lay func(*tensor.Tensor) *tensor.Tensor) (*train.Checkpoint, error) {
	if s.Pipeline != nil {
		return advanceStages(s, base, deltas, lay)
	}
	rounds, units := s.Applied(base.Round), int(s.Units)
	if len(deltas) != len(rounds)*units {
		return nil, fmt.Errorf("%w: %d updates of %d rounds of %d units", ErrRound, len(deltas), len(rounds), units)
	}
	for i, d := range deltas {
		if len(d) != len(base.Params) {
			return nil, fmt.Errorf("%w: update %d has %d tensors of %d", ErrRound, i, len(d), len(base.Params))
		}
	}
	switch {
	case s.Exchange.Pairs > 0:
		return advancePairs(s, base, deltas)
	case s.Exchange.Policies > 0:
		return advancePolicies(s, base, deltas, lay)
	}
	next := base
	for i, round := range rounds {
		to := lay
		if to == nil || i < len(rounds)-1 {
			to = func(t *tensor.Tensor) *tensor.Tensor { return t }
		}
		var err error
		if next, err = step(s, next, round, deltas[i*units:(i+1)*units], to); err != nil {
			return nil, err
		}
	}
	return &train.Checkpoint{Round: base.Round + 1, Names: next.Names, Params: next.Params, Outer: next.Outer}, nil
}

// combining returns the combined update of a round for each parameter, transformed back, and releases the tensors that
// it has combined: parameter by parameter where the rule of the specification takes every coordinate by itself, and
// else all at once.
func combining(s *train.Spec, deltas [][]*tensor.Tensor) (func(i int) (*tensor.Tensor, error), error) {
	if aggregate.ByCoordinate(s.Exchange.Rule) {
		return func(i int) (*tensor.Tensor, error) {
			one := make([][]*tensor.Tensor, len(deltas))
			for u, d := range deltas {
				one[u] = []*tensor.Tensor{d[i]}
				d[i] = nil
			}
			c, err := Combine(s, one)
			for _, u := range one {
				u[0].Rest()
			}
			if err != nil {
				return nil, err
			}
			return transform.Inverse(s.Exchange.Transform, c[0]), nil
		}, nil
	}
	all, err := Combine(s, deltas)
	for _, d := range deltas {
		clear(d)
	}
	return func(i int) (*tensor.Tensor, error) {
		c := all[i]
		all[i] = nil
		return transform.Inverse(s.Exchange.Transform, c), nil
	}, err
}

// step lets the outer optimizer move a checkpoint with the updates of one round, and lays the tensors of the next one.
func step(s *train.Spec, base *train.Checkpoint, round uint32, deltas [][]*tensor.Tensor,
	lay func(*tensor.Tensor) *tensor.Tensor) (*train.Checkpoint, error) {
	combined, err := combining(s, deltas)
	if err != nil {
		return nil, err
	}
	optimizer, err := NewOptimizer(s.Exchange)
	if err != nil {
		return nil, err
	}
	if len(base.Outer) != optimizer.State() {
		return nil, fmt.Errorf("%w: the checkpoint has %d tensors of state for a parameter, and %s %d", ErrRound,
			len(base.Outer), s.Exchange.Outer, optimizer.State())
	}
	turns, err := Turns(s, base.Names, round)
	if err != nil {
		return nil, err
	}
	if s.Exchange.Gradients {
		all := make([]*tensor.Tensor, len(base.Params))
		for i := range all {
			if all[i], err = combined(i); err != nil {
				return nil, err
			}
		}
		combined = func(i int) (*tensor.Tensor, error) { return all[i], nil }
		g := begin(s, round, all)
		for i := range turns {
			turns[i].Moves = g.of(optimizer, base.Params[i].Shape)
		}
	}
	next := &train.Checkpoint{Names: base.Names, Outer: make([][]*tensor.Tensor, len(base.Outer))}
	for i, p := range base.Params {
		d, err := combined(i)
		if err != nil {
			return nil, err
		}
		if !p.Shape.Equal(d.Shape) {
			return nil, fmt.Errorf("%w: %q is %s and its update %s", ErrRound, base.Names[i], p.Shape, d.Shape)
		}
		q, state := p.Clone(), make([][]float32, len(base.Outer))
		p.Rest()
		moved := make([]*tensor.Tensor, len(base.Outer))
		for k, list := range base.Outer {
			moved[k] = list[i].Clone()
			state[k] = moved[k].F32()
			list[i].Rest()
		}
		if turns[i].Moves != nil {
			turns[i].Moves.Step(q.F32(), d.F32(), state)
		}
		next.Params = append(next.Params, lay(q))
		for k, u := range moved {
			next.Outer[k] = append(next.Outer[k], lay(u))
		}
	}
	return next, nil
}
