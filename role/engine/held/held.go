// Package held keeps the checkpoints of one job in memory that its engine computes with, and gets others from peers:
// whole, or as patches from one that it keeps.
package held

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/checkpoint"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/hold"
)

// Peers is how blobs of others are got.
type Peers interface {
	// Fetch fetches a blob that one of the holders has, unless it is stored.
	Fetch(ctx context.Context, c blob.CID, holders []string) ([]byte, error)
	// Each calls do for 0 to n-1, some of them at the same time, and returns when all calls have returned.
	Each(n int, do func(i int))
}

// Checkpoints holds checkpoints of a job in memory, and gets those that it does not hold from peers.
type Checkpoints struct {
	Task   *train.Task
	Peers  Peers
	Shared *hold.Shared
	Aside  hold.Aside // nil: all stays in memory
	Recent hold.Recent[terms.Checkpoint, *train.Checkpoint]

	versions Versions // nil: checkpoints of others are fetched whole
	save     func(ctx context.Context, c *train.Checkpoint, name terms.Checkpoint) error
}

// Hold keeps a checkpoint in memory, and forgets the one that was not used for the longest time.
func (k *Checkpoints) Hold(name terms.Checkpoint, c *train.Checkpoint) {
	k.Recent.Put(name, k.Shared.Checkpoint(name.Root, c, k.Aside))
}

// Room is where the tensors of a checkpoint go as they are made; nil: they stay in memory.
func (k *Checkpoints) Room() func(*tensor.Tensor) *tensor.Tensor {
	state, err := outer.State(k.Task.Spec.Exchange)
	if err != nil {
		return nil
	}
	size := 0
	for _, shape := range bundle.Parameters(k.Task.Step) {
		size += shape.Bytes()
	}
	return hold.RoomFor(k.Aside, int64(size)*int64(1+state))
}

// Base returns a checkpoint that was loaded or combined before, and is still in memory.
func (k *Checkpoints) Base(name terms.Checkpoint) (*train.Checkpoint, error) {
	c, ok := k.Recent.Get(name)
	if !ok {
		return nil, fmt.Errorf("engine: checkpoint %d is not held", name.Round)
	}
	return c, nil
}

// Load fetches a checkpoint from the store or from its holders, and verifies its root, unless it is in memory.
func (k *Checkpoints) Load(ctx context.Context, name terms.Checkpoint, holders []string) error {
	if _, err := k.Base(name); err == nil {
		return nil
	}
	if len(holders) > 0 && k.bring(ctx, name, holders) == nil {
		return nil
	}
	get := func(ctx context.Context, id blob.CID) ([]byte, error) { return k.Peers.Fetch(ctx, id, holders) }
	each := k.Peers.Each
	if k.Task.Spec.Pipeline != nil { // the memory is that of a stage
		each = checkpoint.InTurn
	}
	c, err := bundle.LoadCheckpointEach(ctx, name, get, each, k.Room())
	if err != nil {
		return err
	}
	if err := bundle.Fits(c, k.Task); err != nil {
		return err
	}
	k.Hold(name, c)
	return nil
}
