package market

import (
	"context"
	"iter"

	"cosmossdk.io/collections"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/registry"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Verifiers draws verifiers for an audit in the run of a job from the whole network, each with the price that it asks:
// those whose offers are at or below the price cap of the order and that meet its conditions. It calls failed with an
// error that ends the draw.
func (k *Keeper) Verifiers(ctx context.Context, job string, seed canon.Digest,
	failed func(error)) iter.Seq[crew.Member] {
	return func(yield func(crew.Member) bool) {
		o, err := k.Ordered(ctx, job)
		if err != nil {
			failed(err)
			return
		}
		err = k.registry.Verifiers(ctx, seed, func(p registry.Participant) (bool, error) {
			offer, err := k.offers.Get(ctx, collections.Join(uint32(crew.Verifier), p.ID))
			if err != nil && !missing(err) {
				return false, err
			}
			price, takes := offer.Asked(o.Coin.Denom)
			if missing(err) || !takes || offer.Slots == 0 || price > o.PriceCap || !o.Checks(p) {
				return false, nil
			}
			if covered, err := covers(ctx, k, o, crew.Verifier, p.ID, price); err != nil || !covered {
				return false, err
			}
			owner, err := k.owner(ctx, p)
			return err == nil && !yield(crew.Member{ID: p.ID, Role: crew.Verifier, Price: price, Stake: p.Firm(),
				Owner: owner}), err
		})
		if err != nil {
			failed(err)
		}
	}
}

// covers reports whether the stake of an account in the coin of an order covers the bond of a seat there. An order in
// the network's own coin is always covered: its members have the stake of their role.
func covers(ctx context.Context, k *Keeper, o market.Order, class crew.Role, id string, price uint64) (bool, error) {
	if o.Coin.Own() {
		return true, nil
	}
	params, err := k.registry.Params(ctx)
	if err != nil {
		return false, err
	}
	s, err := k.stakes.Get(ctx, id, o.Coin)
	return err == nil && o.Value(class, price) <= s.Cover(params, 0), err
}

// Audits reports whether an account offers audits at the price or below.
func (k *Keeper) Audits(ctx context.Context, id string, price uint64) (bool, error) {
	offer, err := k.offers.Get(ctx, collections.Join(uint32(crew.Verifier), id))
	if missing(err) {
		return false, nil
	}
	return err == nil && offer.Slots > 0 && !offer.Foreign && offer.Price <= price, err
}

// owner returns the account that a participant works for: its pool, if that account has an offer as a pool, or itself.
// A machine works for the account that its owner works for.
func (k *Keeper) owner(ctx context.Context, p registry.Participant) (string, error) {
	p, err := k.registry.Lead(ctx, p)
	if err != nil {
		return "", err
	}
	if p.Pool == "" {
		return p.ID, nil
	}
	offer, err := k.offers.Get(ctx, collections.Join(uint32(crew.Worker), p.Pool))
	if missing(err) || err == nil && !offer.Pool {
		return p.ID, nil
	}
	return p.Pool, err
}
