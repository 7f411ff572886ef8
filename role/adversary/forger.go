package adversary

import (
	"context"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/party"
)

// ForgesCheckpoint is a member that attests to a checkpoint of its own making after a round, and serves it. All that do
// sign the same, so that many of them are a quorum.
type ForgesCheckpoint struct {
	Round uint32 // after which; the others are right
	By    float32
}

// Install implements Attack.
func (a ForgesCheckpoint) Install(c Setup) Step {
	c.Party.Lineage = forger{Lineage: c.Party.Lineage, act: a, honest: c.Honest, store: served{blobs: c.Party.Blobs},
		job: c.Party.Job}
	return c.Step
}

type forger struct {
	party.Lineage
	act    ForgesCheckpoint
	honest Honest
	store  served
	job    string
}

// Advance implements party.Lineage.
func (f forger) Advance(ctx context.Context, base terms.Checkpoint, units work.Units,
	get func(i int) ([]byte, error)) (engine.Advanced, error) {
	a, err := f.Lineage.Advance(ctx, base, units, get)
	if err != nil || base.Round != f.act.Round {
		return a, err
	}
	right, err := f.honest.Base(a.Next)
	if err != nil {
		return a, err
	}
	params := append([]*tensor.Tensor{right.Params[0].Clone()}, right.Params[1:]...)
	params[0].F32()[0] += f.act.By
	forged := &train.Checkpoint{Round: right.Round, Names: right.Names, Params: params, Outer: right.Outer}
	a.Next, err = bundle.SaveCheckpoint(ctx, f.store, f.job, forged)
	return a, err
}

// served is a store to which a party adds what it serves. Nothing is read from it.
type served struct {
	blob.Store
	blobs party.Blobs
}

// Put implements blob.Store.
func (s served) Put(ctx context.Context, data []byte) (blob.CID, error) {
	return s.blobs.Put(ctx, data)
}
