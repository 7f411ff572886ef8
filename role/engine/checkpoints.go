package engine

import (
	"context"
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/role/hold"
)

// checkpoints holds checkpoints of a job in memory, and gets those that it does not hold from peers.
type checkpoints struct {
	task   *train.Task
	peers  Peers
	shared *hold.Shared
	aside  hold.Aside // nil: all stays in memory
	held   hold.Recent[terms.Checkpoint, *train.Checkpoint]
}

// Hold keeps a checkpoint in memory, and forgets the one that was not used for the longest time.
func (k *checkpoints) Hold(name terms.Checkpoint, c *train.Checkpoint) {
	k.held.Put(name, k.shared.Checkpoint(name.Root, c, k.aside))
}

// room is where the tensors of a checkpoint go as they are made; nil: they stay in memory.
func (k *checkpoints) room() func(*tensor.Tensor) *tensor.Tensor {
	state, err := outer.State(k.task.Spec.Exchange)
	if err != nil {
		return nil
	}
	size := 0
	for _, shape := range bundle.Parameters(k.task.Step) {
		size += shape.Bytes()
	}
	return hold.RoomFor(k.aside, int64(size)*int64(1+state))
}

// Base returns a checkpoint that was loaded or combined before, and is still in memory.
func (k *checkpoints) Base(name terms.Checkpoint) (*train.Checkpoint, error) {
	c, ok := k.held.Get(name)
	if !ok {
		return nil, fmt.Errorf("engine: checkpoint %d is not held", name.Round)
	}
	return c, nil
}

// Load fetches a checkpoint from the store or from its holders, and verifies its root, unless it is in memory.
func (k *checkpoints) Load(ctx context.Context, name terms.Checkpoint, holders []string) error {
	if _, err := k.Base(name); err == nil {
		return nil
	}
	get := func(ctx context.Context, id blob.CID) ([]byte, error) { return k.peers.Fetch(ctx, id, holders) }
	c, err := bundle.LoadCheckpointEach(ctx, name, get, k.peers.Each, k.room())
	if err != nil {
		return err
	}
	if err := bundle.Fits(c, k.task); err != nil {
		return err
	}
	k.Hold(name, c)
	return nil
}
