package delegation

import (
	"context"
	"errors"

	"cosmossdk.io/collections"
	sdk "github.com/cosmos/cosmos-sdk/types"

	"github.com/starling-network/starling/chain/adapter"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/delegation"
)

// EndBlock makes shares of the stake that joins, and pays out the stake that leaves, a bounded number in each block.
func (k *Keeper) EndBlock(ctx context.Context) error {
	joins := func(d delegation.Delegation) int64 { return d.JoinsAt }
	leaves := func(d delegation.Delegation) int64 { return d.LeavesAt }
	return errors.Join(k.due(ctx, k.joins, joins, k.enter), k.due(ctx, k.leaves, leaves, k.exit))
}

// due does something with the delegations of a queue whose height has come. One that fails is tried again later, and
// stands in the way of no other. If its account asked for a later height meanwhile (at), that one holds.
func (k *Keeper) due(ctx context.Context, set collections.KeySet[dueKey], at func(delegation.Delegation) int64,
	do func(ctx context.Context, p delegation.Pool, d delegation.Delegation) error) error {
	now := height(ctx)
	var due []dueKey
	past := new(collections.Range[dueKey]).EndExclusive(collections.TriplePrefix[int64, string, string](now + 1))
	if err := set.Walk(ctx, past, func(key dueKey) (bool, error) {
		due = append(due, key)
		return len(due) == maxDue, nil
	}); err != nil {
		return err
	}
	for _, key := range due {
		err := adapter.Isolate(ctx, func(ctx context.Context) error {
			p, d, err := k.found(ctx, key.K2(), key.K3())
			switch {
			case err != nil:
				return err
			case at(d) > now || at(d) == 0:
				return set.Remove(ctx, key)
			}
			return errors.Join(k.accrue(ctx, d), do(ctx, p, d), set.Remove(ctx, key))
		})
		if err == nil {
			continue
		}
		sdk.UnwrapSDKContext(ctx).Logger().Error("delegation: a delegation stays as it was", "error", err)
		if err := errors.Join(set.Remove(ctx, key),
			set.Set(ctx, collections.Join3(now+postponed, key.K2(), key.K3()))); err != nil {
			return err
		}
	}
	return nil
}

// enter makes shares of the stake that joins, or returns it.
func (k *Keeper) enter(ctx context.Context, p delegation.Pool, old delegation.Delegation) error {
	member, takes, err := k.member(ctx, p.ID)
	if err != nil {
		return err
	}
	p, d, back := p.Enter(old, member.Firm(), takes)
	return errors.Join(k.custody.Pay(ctx, coin.Coin{}.Denom, d.Delegator, back), k.save(ctx, p, old, d))
}

// exit pays out what leaves.
func (k *Keeper) exit(ctx context.Context, p delegation.Pool, old delegation.Delegation) error {
	p, d, amount := p.Exit(old)
	return errors.Join(k.custody.Pay(ctx, coin.Coin{}.Denom, d.Delegator, amount), k.save(ctx, p, old, d))
}
