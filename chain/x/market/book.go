package market

import (
	"context"

	"cosmossdk.io/collections"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run"
)

// Book is the offers of accounts that may be matched now.
func (k *Keeper) Book(ctx context.Context, beacon canon.Digest) (*market.Book, error) {
	lots, err := k.lots(ctx)
	if err != nil {
		return nil, err
	}
	wanted, err := k.wanted(ctx)
	if err != nil {
		return nil, err
	}
	holders := map[string][]string{}
	for _, data := range wanted {
		pairs, err := keys(ctx, k.holders, collections.NewPrefixedPairRange[string, string](data))
		if err != nil {
			return nil, err
		}
		for _, p := range pairs {
			holders[data] = append(holders[data], p.K2())
		}
	}
	return market.NewBook(lots, holders, beacon), nil
}

// wanted lists the datasets of the jobs that may look for members, each once.
func (k *Keeper) wanted(ctx context.Context) (all []string, err error) {
	open, err := keys(ctx, k.open)
	if err != nil {
		return nil, err
	}
	running, err := k.runs.Running(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{"": true}
	for _, id := range append(open, running...) {
		job, err := k.Job(ctx, id)
		if err != nil {
			return nil, err
		}
		if data := job.Order.Data; !seen[data] {
			seen[data] = true
			all = append(all, data)
		}
	}
	return all, nil
}

// lots lists the offers of accounts that may be matched, those of pools one for each member, with the slots that are left.
func (k *Keeper) lots(ctx context.Context) (lots []market.Lot, err error) {
	params, err := k.registry.Params(ctx)
	if err != nil {
		return nil, err
	}
	engaged, err := k.engagements(ctx)
	if err != nil {
		return nil, err
	}
	own, pools := map[string]bool{}, []market.Offer(nil)
	add := func(o market.Offer) error {
		p, err := k.registry.Get(ctx, o.ID)
		if err != nil || !p.Eligible(o.Role, params) {
			return err
		}
		at := engaged[role{o.Role, o.ID}]
		o.Slots -= min(o.Slots, at.runs)
		lots = append(lots, market.Lot{Offer: o, Profile: market.ProfileOf(p, params, at.value+engaged[other(o)].value)})
		return nil
	}
	err = k.offers.Walk(ctx, nil, func(_ offerKey, o market.Offer) (bool, error) {
		if o.Pool {
			pools = append(pools, o)
			return false, nil
		}
		own[o.ID] = own[o.ID] || o.Role == run.Worker
		return false, add(o)
	})
	if err != nil {
		return nil, err
	}
	for _, pool := range pools {
		ids, err := k.registry.Members(ctx, pool.ID)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if own[id] {
				continue // it speaks for itself
			}
			if err := add(pool.Pooled(id)); err != nil {
				return nil, err
			}
		}
	}
	return lots, nil
}

// role of an account.
type role struct {
	run.Role
	id string
}

// other is the same account in the other role.
func other(o market.Offer) role {
	if o.Role == run.Worker {
		return role{run.Verifier, o.ID}
	}
	return role{run.Worker, o.ID}
}

// engagement is the runs that an account works in, and the price of the work that it is leased there.
type engagement struct {
	runs  uint32
	value uint64
}

func (k *Keeper) engagements(ctx context.Context) (map[role]engagement, error) {
	busy, err := keys(ctx, k.busy)
	if err != nil {
		return nil, err
	}
	found, jobs := map[role]engagement{}, map[string]Job{}
	for _, b := range busy {
		job, known := jobs[b.K3()]
		if !known {
			if job, err = k.Job(ctx, b.K3()); err != nil {
				return nil, err
			}
			jobs[b.K3()] = job
		}
		at := role{run.Role(b.K1()), b.K2()}
		e := found[at]
		e.runs++
		// The price is at most the cap of the order.
		value := job.Order.Value(at.Role, job.Order.PriceCap)
		e.value = max(e.value+value, value) // saturates well enough: no stake covers as much
		found[at] = e
	}
	return found, nil
}
