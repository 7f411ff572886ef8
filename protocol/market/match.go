package market

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
)

// Lease is a matched order: who takes part, at which price.
type Lease struct {
	Job     string       `cbor:"1,keyasint"`
	Members []run.Member `cbor:"2,keyasint"` // in order of ID; for run.New
}

// Reason says why an order stays open.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	Matched         Reason = ""
	TooFewWorkers   Reason = "too_few_workers"    // at any price
	TooFewVerifiers Reason = "too_few_verifiers"  // at any price
	PriceAboveCap   Reason = "price_above_cap"    // enough offers, not enough at or below the order's cap
	BudgetTooSmall  Reason = "budget_below_round" // the budget does not cover one round at the matched prices
)

// Match finds the members of an order among the open offers, or says why it must wait. The cheapest offers win, then the
// earliest, then the beacon decides; an account takes part once, as a worker if it offers both. The order of the offers
// given does not matter.
func Match(o Order, offers []Offer, beacon canon.Digest) (Lease, Reason) {
	ranked := rank(o.ID, offers, beacon)
	workers := choose(ranked, run.Worker, o.Workers.Target, o.PriceCap, nil)
	verifiers := choose(ranked, run.Verifier, o.Verifiers, o.PriceCap, workers)
	if uint32(len(workers)) < o.Workers.Min || uint32(len(verifiers)) < o.Verifiers {
		return Lease{}, lacking(o, ranked)
	}
	members := slices.Concat(workers, verifiers)
	if RoundCost(run.State{Terms: o.Terms, Members: members}) > o.Budget {
		return Lease{}, BudgetTooSmall
	}
	slices.SortFunc(members, func(a, b run.Member) int { return cmp.Compare(a.ID, b.ID) })
	return Lease{Job: o.ID, Members: members}, Matched
}

// lacking tells an order that no price would match from one whose cap is too low.
func lacking(o Order, ranked []Offer) Reason {
	const any = ^uint64(0)
	workers := choose(ranked, run.Worker, o.Workers.Target, any, nil)
	if uint32(len(workers)) < o.Workers.Min {
		return TooFewWorkers
	}
	if uint32(len(choose(ranked, run.Verifier, o.Verifiers, any, workers))) < o.Verifiers {
		return TooFewVerifiers
	}
	return PriceAboveCap
}

// rank orders the offers that have a slot by price, then height, then a digest that nobody could choose.
func rank(job string, offers []Offer, beacon canon.Digest) []Offer {
	type lot struct {
		Offer
		draw canon.Digest
	}
	var lots []lot
	for _, f := range offers {
		if f.Slots > 0 {
			lots = append(lots, lot{f, canon.Sum("starling/match/1", beacon[:], []byte(job), []byte(f.ID), []byte{byte(f.Role)})})
		}
	}
	slices.SortFunc(lots, func(a, b lot) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(a.At, b.At), bytes.Compare(a.draw[:], b.draw[:]))
	})
	ranked := make([]Offer, len(lots))
	for i, l := range lots {
		ranked[i] = l.Offer
	}
	return ranked
}

// choose takes the first offers of a role up to a number, whose price is within the cap and whose account is not taken.
func choose(ranked []Offer, role run.Role, number uint32, priceCap uint64, taken []run.Member) []run.Member {
	var chosen []run.Member
	has := func(members []run.Member, id string) bool {
		return slices.ContainsFunc(members, func(m run.Member) bool { return m.ID == id })
	}
	for _, f := range ranked {
		if uint32(len(chosen)) == number {
			break
		}
		if f.Role == role && f.Price <= priceCap && !has(taken, f.ID) && !has(chosen, f.ID) {
			chosen = append(chosen, run.Member{ID: f.ID, Role: role, Price: f.Price, Active: true})
		}
	}
	return chosen
}
