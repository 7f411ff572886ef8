package node

import (
	"context"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/protocol/run"
)

// fabricate is what a dishonest worker does in place of training: it makes up state roots, and an update of small
// noise that no single look at it gives away. It exists to show on a real network that such work is caught.
func (e *engine) fabricate(_ context.Context, name run.Checkpoint, unit uint32) (*work, error) {
	base, err := e.base(name)
	if err != nil {
		return nil, err
	}
	s, err := e.task.Begin(base, unit)
	if err != nil {
		return nil, err
	}
	spec := e.task.Spec
	r := &train.Result{Segments: []canon.Digest{s.Root()}, Losses: make([]float32, spec.Steps)}
	for k := range spec.Segments() {
		r.Segments = append(r.Segments, invented(name, unit, k))
	}
	for i, p := range base.Params {
		noise := tensor.New(p.Shape)
		kernel.NormalTo(noise.F32(), uint64(unit), uint64(i))
		for j := range noise.F32() {
			noise.F32()[j] *= 1e-3
		}
		r.Delta = append(r.Delta, noise)
	}
	for i := range r.Losses {
		r.Losses[i] = 1
	}
	u, err := outer.Commit(spec, base.Round, unit, r)
	if err != nil {
		return nil, err
	}
	return newWork(u, r), nil
}

func invented(name run.Checkpoint, unit, k uint32) canon.Digest {
	return canon.Hash("starling/invented", []any{name.Root, unit, k})
}
