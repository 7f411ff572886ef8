package market

import (
	"cmp"
	"math"
	"slices"

	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
)

// Lease is a matched order: its members and their prices.
type Lease struct {
	Job     string        `cbor:"1,keyasint"`
	Members []crew.Member `cbor:"2,keyasint"` // in order of ID; for run.New
}

// Reason is why an order stays open.
type Reason string

// The reasons, in the order in which they are looked for.
const (
	Matched         Reason = ""
	TooFewWorkers   Reason = "too_few_workers"   // at any price in the coin of the order, and whatever they are
	TooFewVerifiers Reason = "too_few_verifiers" // likewise, or of too few owners
	ConditionsUnmet Reason = "conditions_unmet"  // enough offers, not enough that keep the conditions at any price
	TooFewDomains   Reason = "too_few_domains"   // enough that keep the conditions, in too few failure domains
	PriceAboveCap   Reason = "price_above_cap"   // enough of them, not enough at or below the order's cap
	// the budget does not cover one round at the prices of the drawn members
	BudgetTooSmall Reason = "budget_below_round"
)

var reasons = map[Reason]string{
	TooFewWorkers: "not enough workers offer", TooFewVerifiers: "not enough verifiers offer",
	ConditionsUnmet: "not enough offers meet the conditions",
	TooFewDomains:   "those that meet the conditions are in too few failure domains",
	PriceAboveCap:   "not enough offers are at or below the highest price of the order",
	BudgetTooSmall:  "the budget does not cover a round",
}

// Text is the reason in words; nothing for an order that is matched.
func (r Reason) Text() string { return reasons[r] }

// Match draws the members of an order, or returns why it must wait. It does not change the book: see Take.
//
// Every condition holds for every member. Of the lots that meet them at or below the order's price cap, seats are
// drawn by the beacon of the block, each lot with a chance in proportion to its stake: its price has no effect. All
// members of a class of work are paid the highest price that one of them asks. Verifiers are drawn first, then
// generators, as far as the order takes them in place of workers. No two of them have
// one owner, and none has the owner of a worker; two workers have one owner only where the lots of other owners do not
// suffice. The workers of a lease are of at least Conditions.Domains failure domains: that number is drawn of
// different ones before the rest. An account takes part once. Workers that earn their stake are not drawn: they join
// (see Join).
func (b *OrderBook) Match(o Order) (Lease, Reason) {
	w := b.wish(&o)
	workers, verifiers := b.seats(w, o.PriceCap)
	if uint32(len(workers)) < o.Workers.Min || uint32(len(verifiers)) < o.Verifiers {
		return Lease{}, b.lacking(w)
	}
	generators := slices.DeleteFunc(slices.Clone(workers), func(l *lot) bool { return l.Role == crew.Worker })
	members := slices.Concat(w.price(generators, 0), w.price(workers[len(generators):], 0), w.price(verifiers, 0))
	if cost.Round(run.State{Progress: progress.Progress{Crew: crew.Crew{Terms: o.Terms, Members: members}}}) > o.Budget {
		return Lease{}, BudgetTooSmall
	}
	slices.SortFunc(members, func(a, b crew.Member) int { return cmp.Compare(a.ID, b.ID) })
	return Lease{Job: o.ID, Members: members}, Matched
}

// seats draws both roles: verifiers first, or workers first where that leaves too few of one of them, since an account
// may offer both.
func (b *OrderBook) seats(w *wish, priceCap uint64) (workers, verifiers []*lot) {
	taken := owners{}
	verifiers = b.verifiers(w, priceCap, taken)
	workers, _ = b.workers(w, priceCap, taken)
	if uint32(len(workers)) >= w.order.Workers.Min && uint32(len(verifiers)) >= w.order.Verifiers {
		return workers, verifiers
	}
	taken = owners{}
	workers, _ = b.workers(w, priceCap, taken)
	return workers, b.verifiers(w, priceCap, taken)
}

// workers draws up to the target of an order, or none if too few domains fit; fit says how many lots it drew then. The
// lots of generators come first.
func (b *OrderBook) workers(w *wish, priceCap uint64, taken owners) (all []*lot, fit int) {
	generators := b.generators(w, priceCap, taken)
	o, u := w.order, b.urn(w, crew.Worker, priceCap)
	var chosen []*lot
	domains := map[string]bool{}
	seat := func(l *lot) {
		chosen, domains[l.Domain] = append(chosen, l), true
		taken.add(l.Owner, l.Role)
	}
	fresh := func(l *lot) bool { return !domains[l.Domain] }
	apart := func(l *lot) bool {
		return taken.apart(l) && !slices.ContainsFunc(generators, func(g *lot) bool { return g.ID == l.ID })
	}
	wanted, target := int(o.Conditions.Domains), int(o.Workers.Target)-len(generators)
	u.draw(wanted, func(l *lot) bool { return fresh(l) && taken.alone(l) }, seat)
	u.draw(wanted-len(chosen), func(l *lot) bool { return fresh(l) && apart(l) }, seat)
	short := len(chosen) < wanted
	u.draw(target-len(chosen), taken.alone, seat)
	u.draw(target-len(chosen), apart, seat)
	if all = slices.Concat(generators, chosen); short {
		return nil, len(all)
	}
	return all, len(all)
}

// generators draws as many as an order takes, or fewer: workers of all domains that it wants have a seat.
func (b *OrderBook) generators(w *wish, priceCap uint64, taken owners) (chosen []*lot) {
	o, u := w.order, b.urn(w, crew.Generator, priceCap)
	most := min(o.Generators, o.Workers.Target-o.Conditions.Domains)
	for _, rule := range []func(*lot) bool{taken.alone, taken.apart} {
		u.draw(int(most)-len(chosen), rule, func(l *lot) {
			chosen = append(chosen, l)
			taken.add(l.Owner, l.Role)
		})
	}
	return chosen
}

// verifiers draws as many as an order wants, or fewer.
func (b *OrderBook) verifiers(w *wish, priceCap uint64, taken owners) (chosen []*lot) {
	if w.order.Verifiers == 0 {
		return nil
	}
	b.urn(w, crew.Verifier, priceCap).draw(int(w.order.Verifiers), taken.apart, func(l *lot) {
		chosen = append(chosen, l)
		taken.add(l.Owner, l.Role)
	})
	return chosen
}

// lacking tells an order that no price would match from one whose cap is too low.
func (b *OrderBook) lacking(w *wish) Reason {
	o := w.order
	switch {
	case b.table(o, crew.Worker).offering+min(b.table(o, crew.Generator).offering, o.Generators) < o.Workers.Min:
		return TooFewWorkers
	case b.table(o, crew.Verifier).offering < o.Verifiers:
		return TooFewVerifiers
	}
	alone, fit := b.workers(w, math.MaxUint64, owners{})
	workers, verifiers := b.seats(w, math.MaxUint64)
	switch {
	case uint32(fit) < o.Workers.Min:
		return ConditionsUnmet
	case uint32(len(alone)) < o.Workers.Min:
		return TooFewDomains
	case uint32(len(workers)) >= o.Workers.Min && uint32(len(verifiers)) == o.Verifiers:
		return PriceAboveCap
	case uint32(b.fitting(w, crew.Verifier)) < o.Verifiers:
		return ConditionsUnmet
	}
	return TooFewVerifiers // the others are drawn as workers, or are of one owner
}

// fitting counts the lots of a role that fit an order at any price.
func (b *OrderBook) fitting(w *wish, role crew.Role) (n int) {
	for _, l := range b.table(w.order, role).lots {
		if w.misfit(l) == Fits {
			n++
		}
	}
	return n
}
