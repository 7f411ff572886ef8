package catalog

import (
	"github.com/starling-network/starling/protocol/market"
)

// MaxPayments is the largest number of payments of one revenue: of a work, its parents, and theirs.
const MaxPayments = 1 + MaxParents + MaxParents*MaxParents

// Work is a work as its revenue is divided.
type Work struct {
	Pool    string // the shares that get its revenue
	Parents []Parent
}

// Payment is a part of a revenue.
type Payment struct {
	Pool   string
	Amount uint64 // grains, not zero
}

// Split divides the revenue of a work, in grains: each parent gets its royalty of the amount, of which the parents of
// the parent get theirs, and those of these nothing. All divisions round down, and a work keeps what is left of its
// part. The first payment is the work's own, whatever its amount; each other pool has one. The sum is the amount. of
// returns a listed work.
func Split(amount uint64, w Work, of func(listing uint64) (Work, error)) ([]Payment, error) {
	payments := []Payment{{w.Pool, 0}}
	pay := func(pool string, amount uint64) {
		for i := range payments {
			if payments[i].Pool == pool {
				payments[i].Amount += amount
				return
			}
		}
		if amount > 0 {
			payments = append(payments, Payment{pool, amount})
		}
	}
	left := amount
	for _, p := range w.Parents {
		part := min(market.Share(amount, p.Royalty), left)
		if part == 0 {
			continue
		}
		left -= part
		parent, err := of(p.Listing)
		if err != nil {
			return nil, err
		}
		kept := part
		for _, g := range parent.Parents {
			due := min(market.Share(part, g.Royalty), kept)
			if due == 0 {
				continue
			}
			grand, err := of(g.Listing)
			if err != nil {
				return nil, err
			}
			kept -= due
			pay(grand.Pool, due)
		}
		pay(parent.Pool, kept)
	}
	pay(w.Pool, left)
	return payments, nil
}
