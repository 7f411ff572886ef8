package market

import (
	"context"
	"errors"

	"cosmossdk.io/collections"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/coin"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/registry/earning"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Book returns the offers that may be matched now.
func (k *Keeper) Book(ctx context.Context, beacon canon.Digest) (*market.OrderBook, error) {
	lots, _, err := k.lots(ctx)
	if err != nil {
		return nil, err
	}
	return market.NewBook(lots, beacon), nil
}

// prune removes offers whose accounts no longer have the stake of their role, so that a block reads only offers with a
// stake.
func (l *lazyBook) prune(ctx context.Context, stale []offerKey) (err error) {
	for _, key := range stale {
		err = errors.Join(err, l.keeper.offers.Remove(ctx, key))
	}
	return err
}

// lots lists the offers that may be matched, with their free slots; an offer of a pool becomes one offer per member.
// stale are the offers of accounts that no longer have the stake of their role.
func (k *Keeper) lots(ctx context.Context) (lots []market.Listing, stale []offerKey, err error) {
	params, err := k.registry.Params(ctx)
	if err != nil {
		return nil, nil, err
	}
	engaged, err := k.engagements(ctx)
	if err != nil {
		return nil, nil, err
	}
	leased, err := leases(ctx, k)
	if err != nil {
		return nil, nil, err
	}
	all, own, pools := []market.Offer(nil), map[string]bool{}, map[string]bool{}
	err = k.offers.Walk(ctx, nil, func(_ offerKey, o market.Offer) (bool, error) {
		all = append(all, o)
		if o.Pool {
			pools[o.ID] = true
		} else if o.Role == crew.Worker {
			own[o.ID] = true
		}
		return false, nil
	})
	if err != nil {
		return nil, nil, err
	}
	add := func(o market.Offer) error {
		p, err := k.registry.Get(ctx, o.ID)
		if err == nil && p.Firm() < params.MinStake(o.Role.Registered()) && !earning.Active(p) {
			// the offers of pools are not stored under the account of a member
			stale = append(stale, collections.Join(uint32(o.Role), o.ID))
		}
		if err != nil || !p.Eligible(o.Role.Registered(), params) {
			return err
		}
		at := engaged[role{o.Role, o.ID}]
		if p.Earning { // one run at a time, with a measured machine
			if o.Slots = 1; p.Rate < params.Earning.Rate {
				o.Slots = 0
			}
		}
		o.Slots -= min(o.Slots, at.runs)
		lead, err := k.registry.Lead(ctx, p)
		if err != nil {
			return err
		}
		owner := lead.ID
		if pools[lead.Pool] { // the participant named the pool, and the pool offers for its members
			owner = lead.Pool
		}
		listing := market.Listing{Offer: o, Profile: market.ProfileOf(p, params, owner, engaged.value(o.ID))}
		if listing.Backing, err = k.registry.Backing(ctx, p); err != nil {
			return err
		}
		if !o.Foreign {
			lots = append(lots, listing)
		}
		if p.Earning { // it has no stake in any coin to lose
			return nil
		}
		for _, a := range o.Asks {
			stake, err := k.stakes.Get(ctx, o.ID, coin.Coin{Denom: a.Denom})
			if err != nil {
				return err
			}
			lots = append(lots, listing.In(a, stake.Cover(params, leased[inCoin{o.ID, a.Denom}])))
		}
		return nil
	}
	for _, o := range all {
		if !o.Pool {
			if err := add(o); err != nil {
				return nil, nil, err
			}
			continue
		}
		switch p, err := k.registry.Get(ctx, o.ID); {
		case err != nil:
			return nil, nil, err
		case p.Firm() < params.MinStake(o.Role):
			stale = append(stale, collections.Join(uint32(o.Role), o.ID))
			continue
		}
		ids, err := k.registry.Members(ctx, o.ID)
		if err != nil {
			return nil, nil, err
		}
		for _, id := range ids {
			if own[id] {
				continue // it has its own offer
			}
			if err := add(o.Pooled(id)); err != nil {
				return nil, nil, err
			}
		}
	}
	return lots, stale, nil
}

// role is a class of work of an account.
type role struct {
	crew.Role
	id string
}

// engagements are those of each account, by class of work.
type engagements map[role]engagement

// value is what a conviction must take from an account in all its runs.
func (e engagements) value(id string) (sum uint64) {
	for _, class := range crew.Classes {
		sum = cost.Add(sum, e[role{class, id}].value)
	}
	return sum
}

// engagement is the number of runs that an account works in, and what a conviction must take from it there
// (market.Order.Value), in uzen.
type engagement struct {
	runs  uint32
	value uint64
}

// inCoin is an account and the denomination of a coin.
type inCoin struct{ id, denom string }

// leases are what a conviction must take from each account in each other coin, in all its runs.
func leases(ctx context.Context, k *Keeper) (map[inCoin]uint64, error) {
	sums := map[inCoin]uint64{}
	return sums, k.leased.Walk(ctx, nil, func(at leaseKey, l lease) (bool, error) {
		of := inCoin{at.K1(), l.Denom}
		sums[of] = cost.Add(sums[of], l.Value)
		return false, nil
	})
}

func (k *Keeper) engagements(ctx context.Context) (engagements, error) {
	found := engagements{}
	return found, k.busy.Walk(ctx, nil, func(b busyKey, value uint64) (bool, error) {
		at := role{crew.Role(b.K1()), b.K2()}
		e := found[at]
		e.runs++
		e.value = max(e.value+value, value) // saturates on overflow: no stake covers as much
		found[at] = e
		return false, nil
	})
}
