package hosting

import (
	"context"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
)

// EndBlock ends the accusations in which a party is late, settles the channels whose payers asked to close, and returns
// the bonds of providers that left and are not accused.
func (k *Keeper) EndBlock(ctx context.Context) error {
	if err := k.expire(ctx); err != nil {
		return err
	}
	now := height(ctx)
	past := new(collections.Range[collections.Pair[int64, uint64]]).
		EndExclusive(collections.PairPrefix[int64, uint64](now))
	err := each(ctx, k.until, past, func(ctx context.Context, key collections.Pair[int64, uint64]) error {
		c, p, err := k.channel(ctx, key.K2())
		if err != nil {
			return err
		}
		return k.settle(ctx, c, p)
	})
	if err != nil {
		return err
	}
	unbonded := new(collections.Range[bondKey]).EndExclusive(collections.TriplePrefix[int64, uint64, string](now))
	return each(ctx, k.bonds, unbonded, func(ctx context.Context, key bondKey) error {
		p, err := k.Place(ctx, key.K2(), key.K3())
		if err != nil || !p.Unbonded(now) {
			return err
		}
		open, err := k.accusations.openAgainst(ctx, p.Model, p.Provider)
		if err != nil {
			return err
		}
		if len(open) > 0 { // look again in the next block, after all others: it stands in the way of none
			later := p
			later.Until = now
			return k.place(ctx, p, later)
		}
		if err := k.places.Remove(ctx, collections.Join(p.Model, p.Provider)); err != nil {
			return err
		}
		if err := k.bonds.Remove(ctx, key); err != nil {
			return err
		}
		return k.custody.Pay(ctx, "", p.Provider, p.Held())
	})
}

// each does something with the first keys of a range. A key of which it fails is removed, and the failure logged: none
// stops the blocks, or is tried again in each.
func each[K any](ctx context.Context, set collections.KeySet[K], within *collections.Range[K],
	do func(ctx context.Context, key K) error) error {
	var due []K
	if err := set.Walk(ctx, within, func(key K) (bool, error) {
		due = append(due, key)
		return len(due) == settled, nil
	}); err != nil {
		return err
	}
	for _, key := range due {
		err := adapter.Isolate(ctx, func(ctx context.Context) error { return do(ctx, key) })
		if err != nil {
			sdk.UnwrapSDKContext(ctx).Logger().Error("hosting: a channel or a bond cannot be settled", "error", err)
			if err := set.Remove(ctx, key); err != nil {
				return err
			}
		}
	}
	return nil
}
