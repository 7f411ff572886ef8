package adapter

import (
	"context"
	"errors"
	"slices"

	"cosmossdk.io/collections"
)

// Turn returns at most n members of a set: all of them if there are no more than n, and otherwise the n after the last
// member of the block before, continuing from the beginning after the end. This bounds the work of a block, and every
// member has a turn.
func Turn(ctx context.Context, set collections.KeySet[string], last collections.Item[string], n int) ([]string, error) {
	first, err := upTo(ctx, set, nil, n+1)
	if err != nil || len(first) <= n {
		return first, err
	}
	from, err := last.Get(ctx)
	if err != nil && !errors.Is(err, collections.ErrNotFound) {
		return nil, err
	}
	turn, err := upTo(ctx, set, new(collections.Range[string]).StartExclusive(from), n)
	if err != nil {
		return nil, err
	}
	turn = slices.Concat(turn, first[:n-len(turn)])
	return turn, last.Set(ctx, turn[n-1])
}

// upTo reads at most n members of a set, in order.
func upTo(ctx context.Context, set collections.KeySet[string], within collections.Ranger[string],
	n int) (keys []string, err error) {
	if n <= 0 {
		return nil, nil
	}
	err = set.Walk(ctx, within, func(key string) (bool, error) {
		keys = append(keys, key)
		return len(keys) == n, nil
	})
	return keys, err
}
