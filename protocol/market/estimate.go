package market

import (
	"math/bits"
	"slices"

	"github.com/starling-network/starling/protocol/run"
)

// Estimate is what would become of an order now.
type Estimate struct {
	Lease   Lease
	Why     Reason // it is not matched
	Round   uint64 // the most that a round costs at these prices, uzen
	Whole   uint64 // and the whole run, with every unit audited
	Likely  uint64 // the whole run, with as many audits as its rate draws
	Seconds uint64 // that the training takes at the measured rates of its workers; 0: one of them was never measured
	Passed  []Passed
}

// Passed is an offer that is not taken, and why.
type Passed struct {
	Lot
	Why Misfit
}

// Estimate says what would become of an order now, and of every offer that is not taken why.
func (b *Book) Estimate(o Order) Estimate {
	e := Estimate{}
	e.Lease, e.Why = b.Match(o)
	taken := map[string]run.Role{}
	for _, m := range e.Lease.Members {
		taken[m.ID] = m.Role
	}
	w := b.wish(&o)
	for _, s := range b.shelves {
		for _, l := range s.lots {
			if role, ok := taken[l.ID]; !ok || role != l.Role {
				e.Passed = append(e.Passed, Passed{l.Lot, w.passed(l, ok)})
			}
		}
	}
	slices.SortFunc(e.Passed, func(x, y Passed) int { return (&lot{Lot: x.Lot}).compare(&lot{Lot: y.Lot}) })
	if e.Why != Matched {
		return e
	}
	state := run.State{Terms: o.Terms, Members: e.Lease.Members}
	e.Round = RoundCost(state)
	e.Whole = multiply(e.Round, uint64(o.Terms.Rounds))
	work, checked := highest(state)
	e.Likely = o.likely(work, checked)
	e.Seconds = b.seconds(o, e.Lease)
	return e
}

// passed is why a lot is not taken.
func (w *wish) passed(l *lot, otherRole bool) Misfit {
	if m := w.order.in(l.Region); m != Fits {
		return m
	}
	if m := w.misfit(l); m != Fits {
		return m
	}
	switch {
	case l.Price > w.order.PriceCap:
		return TooDear
	case otherRole:
		return TakenInOtherRole
	}
	return NotChosen
}

// likely is the price of all units, and of the share of them that is audited in the long run.
func (o *Order) likely(work, checked uint64) uint64 {
	rounds := uint64(o.Terms.Rounds)
	high, low := bits.Mul64(multiply(unitsCost(o.Terms, checked), rounds), uint64(o.Terms.AuditPPM))
	audits, _ := bits.Div64(high, low, million) // AuditPPM is at most a million
	return add(multiply(unitsCost(o.Terms, work), rounds), audits)
}

const million = 1_000_000

// seconds is all work over all rates, in the time that it takes if everybody always works.
func (b *Book) seconds(o Order, lease Lease) uint64 {
	var rate uint64
	for _, m := range lease.Members {
		if m.Role != run.Worker {
			continue
		}
		l := b.lots[key{m.Role, m.ID}]
		if l.Rate == 0 {
			return 0
		}
		rate = add(rate, l.Rate)
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

// Hourly is what an hour of a machine of a rate, in operations a second, earns at a price, in uzen.
func Hourly(price, rate uint64) uint64 {
	amount, _ := Cost(multiply(rate, 3600), price)
	return amount
}

// PerFlops is the price, in uzen per 10^15 operations, at which an hour of a machine of a rate earns at least so many uzen.
func PerFlops(hourly, rate uint64) uint64 {
	hour := max(1, multiply(rate, 3600))
	high, low := bits.Mul64(hourly, Flops)
	if high >= hour {
		return ^uint64(0)
	}
	price, rest := bits.Div64(high, low, hour)
	if rest > 0 {
		price++
	}
	return price
}
