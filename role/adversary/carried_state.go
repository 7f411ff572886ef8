package adversary

import (
	"bytes"
	"context"
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
)

// CorruptsCarriedState is a worker that trains and shares updates honestly, and commits to a false carried state: so
// its updates of the next round are wrong.
type CorruptsCarriedState struct {
	Withholds bool // no other party can fetch the state that it commits to
}

// Install implements Attack.
func (a CorruptsCarriedState) Install(c Setup) Step {
	c.Party.Compute = tamperer{c.Honest, a}
	return c.Step
}

type tamperer struct {
	Honest
	CorruptsCarriedState
}

// Train implements party.Compute.
func (t tamperer) Train(ctx context.Context, name terms.Checkpoint, unit uint32) (*engine.Work, error) {
	w, err := t.Honest.Train(ctx, name, unit)
	if err != nil || len(w.Handed) == 0 {
		return w, err
	}
	lie := *w
	lie.Handed = nil
	id, err := blob.Parse(w.Commit.HandedState.CID)
	if err != nil {
		return nil, err
	}
	get := func(_ context.Context, c blob.CID) ([]byte, error) {
		for _, h := range w.Handed {
			if b, err := h.Get(); err != nil || blob.Of(b).Equals(c) {
				return bytes.Clone(b), err
			}
		}
		return nil, fmt.Errorf("adversary: no blob %s", c)
	}
	m, tensors, err := checkpoint.Load(ctx, get, checkpoint.InTurn, id)
	if err != nil {
		return nil, err
	}
	names := train.CarriedNames(t.Task().Spec.Exchange, t.Task().Step)
	for _, n := range names {
		if x := tensors[n]; x.Shape.DType == tensor.Float32 {
			x.F32()[0]++
		} else {
			x.Bytes()[0] ^= 1
		}
	}
	state := blob.NewMemory()
	m.Tensors = nil
	if id, err = checkpoint.Save(ctx, state, m, names, tensors); err != nil {
		return nil, err
	}
	roots := make([]canon.Digest, len(names))
	for i, n := range names {
		roots[i] = tensors[n].Root()
	}
	lie.Commit.HandedState = work.HandedState{Root: train.CarriedRoot(roots), CID: id.String()}
	if t.Withholds {
		return &lie, nil
	}
	blobs, err := checkpoint.Blobs(ctx, state.Get, id)
	for _, c := range blobs {
		b, err := state.Get(ctx, c)
		if err != nil {
			return nil, err
		}
		lie.Handed = append(lie.Handed, hold.PutBlob(nil, b))
	}
	return &lie, err
}
