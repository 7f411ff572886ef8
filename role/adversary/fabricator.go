// Package adversary holds parties that break the rules, each a small type around an honest one: what it does in place of
// its duty, and how it defends that. They exist to show, on a real network and in the simulator, what each attack meets.
//
// They are no part of any honest party, and whatever they say must be refuted by the rules alone.
package adversary

import (
	"context"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/role/engine"
)

// Fabricator is the engine of a worker that skips its training: it makes up state roots, and an update of small noise
// that no single look at it gives away.
type Fabricator struct{ *engine.Engine }

// Train makes a unit up.
func (f Fabricator) Train(_ context.Context, name run.Checkpoint, unit uint32) (*engine.Work, error) {
	base, err := f.Base(name)
	if err != nil {
		return nil, err
	}
	s, err := f.Task().Begin(base, unit)
	if err != nil {
		return nil, err
	}
	spec := f.Task().Spec
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
	return engine.NewWork(spec, base, unit, r)
}

func invented(name run.Checkpoint, unit, k uint32) canon.Digest {
	return canon.Hash("starling/invented", []any{name.Root, unit, k})
}

// Oracle stands by what Train made up.
func (f Fabricator) Oracle(base run.Checkpoint, g dispute.Game) (dispute.Oracle, error) {
	honest, err := f.Engine.Oracle(base, g)
	if err != nil {
		return nil, err
	}
	ops := f.Task().Step.Ops
	dot := max(slices.IndexFunc(ops, func(op program.Operator) bool { return op.Kind == program.Dot }), 0)
	return &pretender{Oracle: honest, claimed: g.After, operator: uint32(dot), shape: ops[dot].Out}, nil
}

// pretender is what a worker can say who committed to a state that it made up: everything as it is, except that the last
// step leads to that state, by an operator with another output.
type pretender struct {
	dispute.Oracle
	claimed  canon.Digest
	operator uint32
	shape    tensor.Shape // of the operator's output
}

// Steps implements dispute.Oracle.
func (p *pretender) Steps(after []uint32) ([]canon.Digest, error) {
	roots, err := p.Oracle.Steps(after)
	if err == nil && len(roots) > 0 {
		roots[len(roots)-1] = p.claimed
	}
	return roots, err
}

// Trace implements dispute.Oracle.
func (p *pretender) Trace(step uint32) (*canon.Tree, error) {
	t, err := p.Oracle.Trace(step)
	if err != nil {
		return nil, err
	}
	made, err := p.Output(step, p.operator)
	if err != nil {
		return nil, err
	}
	return replaced(t, int(p.operator), tensor.RootOf(p.shape, made.Root()))
}

// Output implements dispute.Oracle: the last tile of the operator is made up.
func (p *pretender) Output(step, operator uint32) (*canon.Tree, error) {
	t, err := p.Oracle.Output(step, operator)
	if err != nil || operator != p.operator {
		return t, err
	}
	return replaced(t, t.Len()-1, p.claimed)
}

// replaced is a tree in which one leaf is another.
func replaced(t *canon.Tree, i int, leaf canon.Digest) (*canon.Tree, error) {
	leaves := make([]canon.Digest, t.Len())
	for k := range leaves {
		var err error
		if leaves[k], err = t.Node(0, k); err != nil {
			return nil, err
		}
	}
	leaves[i] = leaf
	return canon.NewTree(leaves), nil
}
