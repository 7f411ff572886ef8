package bundle

import (
	"context"

	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/network/blob"
)

// ShippedBytes is how many bytes a job ships, with its first checkpoint.
func ShippedBytes(ctx context.Context, id string, t *train.Task, genesis *train.Checkpoint) (int64, error) {
	var s scale
	_, _, _, err := Ship(ctx, &s, id, t, genesis, "", nil)
	return s.bytes, err
}

// CheckpointBytes is how many bytes a checkpoint of a job has.
func CheckpointBytes(ctx context.Context, id string, c *train.Checkpoint) (int64, error) {
	var s scale
	_, err := SaveCheckpoint(ctx, &s, id, c)
	return s.bytes, err
}

// scale is a store that weighs what is put into it, and keeps nothing.
type scale struct {
	blob.Store
	bytes int64
}

func (s *scale) Put(_ context.Context, data []byte) (blob.CID, error) {
	s.bytes += int64(len(data))
	return blob.Of(data), nil
}
