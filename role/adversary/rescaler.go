package adversary

import (
	"context"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/engine"
)

// Rescales is a worker that is honest for some rounds, and then trains nothing: it sends the change of the last outer
// step, times a factor. That has about the norm and the direction of the honest updates, and lowers the loss.
type Rescales struct {
	After  uint32 // rounds
	Factor float32
}

// Install implements Attack.
func (a Rescales) Install(c Setup) Step {
	c.Party.Compute = &rescaler{faultyCompute: faultyCompute{Honest: c.Honest}, act: a}
	return c.Step
}

type rescaler struct {
	faultyCompute
	act   Rescales
	round uint32           // of now
	now   []*tensor.Tensor // parameters of the latest checkpoint
	last  []*tensor.Tensor // of the one before; nil: not known
}

// Train implements party.Compute.
func (r *rescaler) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	base, err := r.Base(name)
	if err != nil {
		return nil, err
	}
	switch {
	case r.now == nil || name.Round > r.round+1:
		r.now, r.last = clones(base.Params), nil
	case name.Round == r.round+1:
		r.now, r.last = clones(base.Params), r.now
	}
	r.round = name.Round
	if name.Round < r.act.After || r.last == nil {
		return r.Honest.Train(ctx, name, unit)
	}
	d := r.faultyCompute
	d.tamper = func(_ uint32, before, after []*tensor.Tensor) { // it stays where it began
		for i := range after {
			copy(after[i].Bytes(), before[i].Bytes())
		}
	}
	d.poison = r.step
	return d.Train(ctx, name, unit)
}

// step is the update that it sends.
func (r *rescaler) step(delta []*tensor.Tensor) {
	for i, d := range delta {
		for j := range d.F32() {
			d.F32()[j] = (r.last[i].F32()[j] - r.now[i].F32()[j]) * r.act.Factor
		}
	}
}
