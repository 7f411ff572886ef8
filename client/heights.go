package client

import (
	"context"
	"errors"
)

// Heights returns a function that waits for the next block, and returns its height. The subscription ends with ctx.
func Heights(ctx context.Context, c *Client) (next func(context.Context) (int64, error), _ error) {
	blocks, err := c.Blocks(ctx)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (int64, error) {
		select {
		case b, ok := <-blocks:
			if !ok {
				return 0, errors.Join(ctx.Err(), ErrClosed)
			}
			return b.Height, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}, nil
}
