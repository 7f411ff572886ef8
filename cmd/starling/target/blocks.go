package target

import (
	"context"
	"errors"

	"github.com/starling-network/starling/client"
)

// Blocks returns a function that waits for the next block, and returns its height.
func Blocks(ctx context.Context, cl *client.Client) (func(context.Context) (int64, error), error) {
	blocks, err := cl.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (int64, error) {
		select {
		case b, ok := <-blocks:
			if !ok {
				return 0, errors.Join(ctx.Err(), client.ErrClosed)
			}
			return b.Height, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}, nil
}
