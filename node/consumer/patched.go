package consumer

import (
	"context"
	"errors"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/weights"
	"github.com/starling-network/starling/node/member/patches"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/bundle"
)

var errWhole = errors.New("consumer: the checkpoint is fetched whole")

// patched gets a checkpoint of the lineage as a patch from the one that was collected last, and stores it. An error is
// a reason to fetch it whole. In a network of one process nothing is fetched over a link.
func patched(ctx context.Context, c *Consumer, name terms.Checkpoint) (*train.Checkpoint, error) {
	if c.last == nil || c.Options.Network == "" || len(c.lines) == 0 {
		return nil, errWhole
	}
	has := c.lines[len(c.lines)-1].AsCheckpoint()
	x := weights.Receiver(c.Host, c.Store, c.fetcher.FetchWithin)
	defer x.Close()
	members := func(ctx context.Context) ([]string, error) {
		s, err := c.Chain.Training.Run(ctx, c.Job.JobID())
		if err != nil {
			return nil, err
		}
		return patches.Members(ctx, c.Chain.Registry, s.Members)
	}
	next, err := bundle.Bring(ctx, patches.Exchange{Exchange: x, Log: c.Log, Members: members}, has, c.last, name, nil,
		func() func(*tensor.Tensor) *tensor.Tensor {
			return aside(c).Room(c.Job.Size().Checkpoint())
		})
	if err != nil {
		return nil, err
	}
	return next, bundle.SaveAs(ctx, c.Store, c.Job.JobID(), next, name)
}
