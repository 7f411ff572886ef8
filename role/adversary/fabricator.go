package adversary

import (
	"context"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/engine"
)

// Skips is a worker that skips its training.
type Skips struct{}

// Install implements Attack.
func (Skips) Install(c Setup) Step {
	c.Party.Compute = Fabricator{c.Honest}
	return c.Step
}

// Fabricator makes state roots up in place of training, and an update of small noise that no single look at it gives
// away.
type Fabricator struct{ Honest }

// Train makes a unit up.
func (f Fabricator) Train(_ context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	base, err := f.Base(name)
	if err != nil {
		return nil, err
	}
	from, err := f.Origin(name, unit)
	if err != nil {
		return nil, err
	}
	s, err := f.Task().Begin(base, unit, from)
	if err != nil {
		return nil, err
	}
	spec := f.Task().Spec.Of(unit)
	r := &train.Result{Segments: []canon.Digest{s.Root()}, Losses: make([]float32, spec.StepsOf(unit)), End: s.Tensors()}
	for k := range spec.SegmentsOf(unit) {
		r.Segments = append(r.Segments, invented(name, unit, k))
	}
	for i, p := range base.Params {
		noise := tensor.New(p.Shape)
		philox.NormalTo(noise.F32(), uint64(unit), uint64(i))
		for j := range noise.F32() {
			noise.F32()[j] *= 1e-3
		}
		r.Delta = append(r.Delta, noise)
	}
	for i := range r.Losses {
		r.Losses[i] = 1
	}
	return f.NewWork(name, unit, r)
}

func invented(name terms.Checkpoint, unit, k uint32) canon.Digest {
	return canon.Hash("starling/invented", []any{name.Root, unit, k})
}

// Oracle defends the fabricated result of Train.
func (f Fabricator) Oracle(base terms.Checkpoint, g dispute.Dispute) (dispute.Oracle, error) {
	honest, err := f.Honest.Oracle(base, g)
	if err != nil {
		return nil, err
	}
	ops := f.Task().Of(g.Config.Unit).Step.Ops
	dot := slices.IndexFunc(ops, func(op program.Operator) bool { return op.Kind == program.Dot })
	return &pretender{Oracle: honest, claimed: g.Steps.After, steps: Last, operator: max(dot, 0), parts: Last}, nil
}
