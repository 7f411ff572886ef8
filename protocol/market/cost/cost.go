// Package cost is the arithmetic of prices: the cost of operations, of a round and of a run at given prices, and of an
// hour of a machine. It draws no seats and moves no coins, which packages market and reward do.
package cost

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// ErrOverflow is returned with the largest amount there is, when a cost is beyond it.
var ErrOverflow = errors.New("cost: amount above 2^64-1 uzen")

// Flops is the amount of work that prices are for: a price is uzen per 10^15 floating-point operations.
const Flops = 1_000_000_000_000_000

// Of is floor(flops * price / 10^15) in uzen, in 128-bit arithmetic. A cost beyond 64 bits is the largest amount,
// with ErrOverflow.
func Of(flops, price uint64) (uint64, error) {
	high, low := bits.Mul64(flops, price)
	if high >= Flops {
		return math.MaxUint64, fmt.Errorf("%w: %d operations at %d uzen per 10^15", ErrOverflow, flops, price)
	}
	amount, _ := bits.Div64(high, low, Flops)
	return amount, nil
}

// Quote is the cost of a job if every member has the same price: one round, and the whole run, with every unit
// accepted once and, if there are verifiers, audited once. Each convicted worker can add the audit that convicted it.
// Amounts beyond 64 bits are the largest amount: no budget covers them.
func Quote(t terms.Terms, price uint64, verifiers uint32) (round, whole uint64) {
	var checked uint64
	if verifiers > 0 {
		checked = price
	}
	round = roundCost(t, price, price, checked)
	return round, Multiply(round, uint64(t.Rounds))
}

// Round is the most that the next round of a run costs, at the prices of its active members: Quote's round at the
// highest price of each role.
func Round(s run.State) uint64 {
	work, checked := Highest(s)
	return roundCost(s.Terms, work, max(work, Dearest(s, crew.Generator)), checked)
}

// Exposure is the most that a run may still cost when it begins another round: the rounds that are not final, whose
// units are not paid and may all be audited, those that were rolled back, and Round. A round that the escrow does
// not cover is not begun.
func Exposure(s run.State) uint64 {
	_, checked := Highest(s)
	if s.Terms.AuditPPM == 0 {
		checked = 0
	}
	total := Round(s)
	for i, l := range append(slices.Clip(s.Open), s.RolledBack...) {
		for _, u := range l.Units {
			if u.Status == work.Assigned && i >= len(s.Open) { // rolled back before it was committed
				continue
			}
			m, _ := s.Member(u.Worker)
			flops := s.Terms.FlopsOf(u.Index)
			work, _ := Of(flops, m.Price)
			total = Add(total, work)
			if !u.Passed {
				again, _ := Of(flops, auditPrice(s, u, checked))
				total = Add(total, again)
			}
		}
	}
	for _, u := range s.Units { // Round counts an audit at the price of the seats
		if dear := auditPrice(s, u, checked); dear > checked {
			more, _ := Of(s.Terms.FlopsOf(u.Index), dear-checked)
			total = Add(total, more)
		}
	}
	return total
}

// auditPrice is the price of the audit of a unit per 10^15 operations: its verifier may have no seat, and ask more
// than the verifiers with a seat.
func auditPrice(s run.State, u *work.Unit, checked uint64) uint64 {
	if m, _ := s.Member(u.Verifier); u.Status == work.Auditing || u.Status == work.Sealed {
		return max(checked, m.Price)
	}
	return checked
}

// Covers says which audits of a unit at a price the rest of a budget covers, one after the other, on top of the cost
// of all open rounds and the next one, and, if spared, on top of all rounds after the current one.
func Covers(s run.State, remaining uint64) (more func(unit uint32, price uint64, spared bool) bool) {
	spare := remaining - min(Exposure(s), remaining)
	var rounds uint64
	if s.Round+1 < s.Terms.Rounds {
		rounds = Multiply(Round(s), uint64(s.Terms.Rounds-s.Round-1))
	}
	return func(unit uint32, price uint64, spared bool) bool {
		one, _ := Of(s.Terms.FlopsOf(unit), price)
		need := one
		if spared {
			need = Add(one, rounds)
		}
		if need > spare {
			return false
		}
		spare -= one
		return true
	}
}

// Highest are the highest prices of the active workers that learn, and of the active verifiers.
func Highest(s run.State) (work, checked uint64) {
	return Dearest(s, crew.Worker), Dearest(s, crew.Verifier)
}

// Dearest is the highest price of the active members of a class of work.
func Dearest(s run.State, class crew.Role) (price uint64) {
	for _, m := range s.Members {
		if m.Active && m.Class() == class {
			price = max(price, m.Price)
		}
	}
	return price
}

func roundCost(t terms.Terms, learn, draw, checked uint64) uint64 {
	all := Units(t, learn, draw)
	if t.AuditPPM > 0 {
		all = Add(all, Units(t, checked, checked))
	}
	return all
}

// Units is the cost of all units of a round at a price for those that learn, and one for those that draw, each rounded
// by itself. It saturates, as a bound should.
func Units(t terms.Terms, price, draw uint64) (all uint64) {
	if t.Sizes == nil && len(t.Pipeline.Flops) == 0 {
		unit, _ := Of(t.UnitFlops, price)
		drawn, _ := Of(t.Rollout.Flops, draw)
		return Add(Multiply(unit, uint64(t.Units)), Multiply(drawn, uint64(t.Rollout.Units)))
	}
	for u := range t.Units {
		unit, _ := Of(t.FlopsOf(u), price)
		all = Add(all, unit)
	}
	return all
}

// Add saturates.
func Add(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

// Multiply saturates.
func Multiply(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high != 0 {
		return math.MaxUint64
	}
	return low
}
