package market

import (
	"cmp"
	"math"
	"slices"

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
	TooFewWorkers   Reason = "too_few_workers"    // at any price, and whatever they are
	TooFewVerifiers Reason = "too_few_verifiers"  // likewise
	ConditionsUnmet Reason = "conditions_unmet"   // enough offers, not enough that keep the conditions at any price
	TooFewDomains   Reason = "too_few_domains"    // enough that keep the conditions, in too few failure domains
	PriceAboveCap   Reason = "price_above_cap"    // enough of them, not enough at or below the order's cap
	BudgetTooSmall  Reason = "budget_below_round" // the budget does not cover one round at the matched prices
)

// Match finds the members of an order, or says why it must wait. It does not change the book: see Take.
//
// Every condition holds for every member. Of the lots that keep them the cheapest are taken; of one price those that hold
// the data, then those in the order's region, then the closest, then the earliest, then as the beacon draws. The workers of
// a lease are of at least Conditions.Domains failure domains: the best lot of each of the best domains, then the best of the
// rest. That is the greedy choice over a matroid, so that no other choice is better in any place. An account takes part
// once, as a worker if it offers both.
func (b *Book) Match(o Order) (Lease, Reason) {
	w := b.wish(&o)
	workers, _ := b.workers(w, o.PriceCap)
	verifiers := b.verifiers(w, o.PriceCap, workers)
	if uint32(len(workers)) < o.Workers.Min || uint32(len(verifiers)) < o.Verifiers {
		return Lease{}, b.lacking(w)
	}
	members := slices.Concat(workers, verifiers)
	if RoundCost(run.State{Terms: o.Terms, Members: members}) > o.Budget {
		return Lease{}, BudgetTooSmall
	}
	slices.SortFunc(members, func(a, b run.Member) int { return cmp.Compare(a.ID, b.ID) })
	return Lease{Job: o.ID, Members: members}, Matched
}

// workers chooses up to the target of an order, or none if too few domains fit; fit says how many lots fit then.
func (b *Book) workers(w *wish, priceCap uint64) (chosen []run.Member, fit int) {
	o, s := w.order, b.walk(w, run.Worker, priceCap)
	var first, rest []*lot // the best of each of the first domains; the others
	domains := map[string]bool{}
	for uint32(len(first)) < o.Conditions.Domains || uint32(len(first)+len(rest)) < o.Workers.Target {
		l := s.next()
		if l == nil {
			break
		}
		if !domains[l.Domain] && uint32(len(first)) < o.Conditions.Domains {
			domains[l.Domain] = true
			first = append(first, l)
			continue
		}
		rest = append(rest, l)
	}
	fit = len(first) + len(rest)
	if uint32(len(first)) < o.Conditions.Domains {
		return nil, fit
	}
	rest = rest[:min(len(rest), int(o.Workers.Target)-len(first))]
	for _, l := range slices.Concat(first, rest) {
		chosen = append(chosen, l.member())
	}
	return chosen, fit
}

func (b *Book) verifiers(w *wish, priceCap uint64, taken []run.Member) (chosen []run.Member) {
	if w.order.Verifiers == 0 {
		return nil
	}
	s := b.walk(w, run.Verifier, priceCap)
	for uint32(len(chosen)) < w.order.Verifiers {
		l := s.next()
		if l == nil {
			break
		}
		if !slices.ContainsFunc(taken, func(m run.Member) bool { return m.ID == l.ID }) {
			chosen = append(chosen, l.member())
		}
	}
	return chosen
}

func (l *lot) member() run.Member {
	return run.Member{ID: l.ID, Role: l.Role, Price: l.Price, Active: true}
}

// lacking tells an order that no price would match from one whose cap is too low.
func (b *Book) lacking(w *wish) Reason {
	o := w.order
	switch {
	case b.offering[run.Worker] < o.Workers.Min:
		return TooFewWorkers
	case b.offering[run.Verifier] < o.Verifiers:
		return TooFewVerifiers
	}
	workers, fit := b.workers(w, math.MaxUint64)
	switch {
	case uint32(fit) < o.Workers.Min:
		return ConditionsUnmet
	case uint32(len(workers)) < o.Workers.Min:
		return TooFewDomains
	case uint32(len(b.verifiers(w, math.MaxUint64, workers))) == o.Verifiers:
		return PriceAboveCap
	case uint32(len(b.verifiers(w, math.MaxUint64, nil))) < o.Verifiers:
		return ConditionsUnmet
	}
	return TooFewVerifiers // those there are work as workers
}
