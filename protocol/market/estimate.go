package market

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
)

// Estimate is the expected outcome of an order now.
type Estimate struct {
	Lease  Lease  // as one beacon would draw it; another one draws others
	Why    Reason // it is not matched
	Round  uint64 // the most that a round costs, uzen: at the highest prices of the offers that may be drawn
	Whole  uint64 // and the whole run, with every unit audited
	Likely uint64 // the whole run at the prices of the lease, with as many audits as its rate draws
	// that the training takes at the measured rates of the workers of the lease; 0: one of them was never measured
	Seconds uint64
	May     []Chance
	Passed  []Passed
}

// Chance is an offer that may be drawn.
type Chance struct {
	Listing
	PPM uint32 // about how often of a million: the seats of its role times its part of the stake of all that may be drawn
}

// Passed is an offer that cannot be drawn, and why.
type Passed struct {
	Listing
	Why Mismatch
}

// Estimate estimates an order: for every offer the chance that it is drawn, or why it cannot be.
func (b *OrderBook) Estimate(o Order) Estimate {
	e := Estimate{}
	e.Lease, e.Why = b.Match(o)
	w := b.wish(&o)
	dearest := run.State{Progress: progress.Progress{Crew: crew.Crew{Terms: o.Terms}}}
	for _, role := range crew.Classes {
		may, total := []*lot(nil), uint64(0)
		for _, l := range b.table(&o, role).lots {
			if why := w.passed(l); why != Fits {
				e.Passed = append(e.Passed, Passed{l.Listing, why})
				continue
			}
			may = append(may, l)
			total += l.weight
		}
		e.Passed = append(e.Passed, b.elsewhere(&o, role)...)
		if len(may) > 0 {
			at := crew.Member{ID: role.String(), Role: role.Registered(), Generates: role == crew.Generator, Active: true}
			for _, l := range may {
				at.Price = max(at.Price, l.Price)
				e.May = append(e.May, Chance{l.Listing,
					chance(l.weight, total, map[crew.Role]uint32{crew.Worker: o.Workers.Target, crew.Verifier: o.Verifiers,
						crew.Generator: o.Generators}[role])})
			}
			dearest.Members = append(dearest.Members, at)
		}
	}
	slices.SortStableFunc(e.May, func(x, y Chance) int {
		return cmp.Or(cmp.Compare(x.Role, y.Role),
			cmp.Compare(x.Price, y.Price))
	})
	slices.SortStableFunc(e.Passed, func(x, y Passed) int {
		return cmp.Or(cmp.Compare(x.Role, y.Role),
			cmp.Compare(x.Price, y.Price))
	})
	if e.Why != Matched {
		return e
	}
	e.Round = cost.Round(dearest)
	e.Whole = cost.Multiply(e.Round, uint64(o.Terms.Rounds))
	e.Likely = o.likely(run.State{Progress: progress.Progress{Crew: crew.Crew{Members: e.Lease.Members}}})
	e.Seconds = b.seconds(o, e.Lease)
	return e
}

// chance is seats * weight / total in millionths, at most all of them.
func chance(weight, total uint64, seats uint32) uint32 {
	high, low := bits.Mul64(weight, uint64(seats)*million)
	if high >= total {
		return million
	}
	ppm, _ := bits.Div64(high, low, total)
	return uint32(min(ppm, million))
}

// elsewhere are the offers that take the network's own coin and not that of an order.
func (b *OrderBook) elsewhere(o *Order, role crew.Role) (passed []Passed) {
	if t := b.tables[kind{"", role}]; t != nil && !o.Coin.Own() {
		for _, l := range t.lots {
			if b.lots[key{kind{o.Coin.Denom, role}, l.ID}] == nil {
				passed = append(passed, Passed{l.Listing, OtherCoin})
			}
		}
	}
	return passed
}

// Unfit is why the offer of an account in a role cannot be drawn for an order; Fits: it can, or there is none.
func (b *OrderBook) Unfit(o Order, role crew.Role, id string) Mismatch {
	l, ok := b.lots[key{kind{o.Coin.Denom, role}, id}]
	if !ok {
		for of := range b.tables { // the order does not matter
			if of.role == role && b.lots[key{of, id}] != nil {
				return OtherCoin
			}
		}
		return Fits
	}
	return b.wish(&o).passed(l)
}

// passed is why a lot cannot be drawn.
func (w *wish) passed(l *lot) Mismatch {
	if m := w.misfit(l); m != Fits {
		return m
	}
	if l.Price > w.order.PriceCap {
		return TooDear
	}
	return Fits
}

// likely is the price of all units, and of the share of them that is audited in the long run. Generators draw all that
// is drawn, if there are any.
func (o *Order) likely(s run.State) uint64 {
	work, checked := cost.Highest(s)
	draw := work
	if s.Present(crew.Generator) > 0 {
		draw = cost.Dearest(s, crew.Generator)
	}
	rounds := uint64(o.Terms.Rounds)
	high, low := bits.Mul64(cost.Multiply(cost.Units(o.Terms, checked, checked), rounds), uint64(o.Terms.Floor()))
	audits, _ := bits.Div64(high, low, million) // the rate is at most a million
	return cost.Add(cost.Multiply(cost.Units(o.Terms, work, draw), rounds), audits)
}

const million = 1_000_000

// seconds is all work over all rates, the time that it takes if all workers always work.
func (b *OrderBook) seconds(o Order, lease Lease) uint64 {
	var rate uint64
	for _, m := range lease.Members {
		if m.Role != crew.Worker {
			continue
		}
		l := b.lots[key{kind{o.Coin.Denom, m.Class()}, m.ID}]
		if l.Rate == 0 {
			return 0
		}
		rate = cost.Add(rate, l.Rate)
	}
	high, low := bits.Mul64(uint64(o.Terms.Rounds), o.Terms.RoundFlops())
	if high >= rate {
		return ^uint64(0)
	}
	seconds, rest := bits.Div64(high, low, rate)
	if rest > 0 {
		seconds++
	}
	return seconds
}
