package reward

import (
	"math"
	"math/bits"

	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/run/crew"
)

// Conviction is the convicted account, as far as its penalty depends on it.
type Conviction struct {
	Stake uint64 // uzen, now
	Bond  uint64 // uzen that a conviction must take so that no lie gains (market.Order.Value)
	Least uint64 // uzen: the smallest stake of its role
	Again bool   // it was convicted within MemoryBlocks
}

// Taken is the amount that a conviction takes of a stake, in uzen. A first one takes an amount that deters: the bond
// of the seat that lied, raised by the share of the accuser, which may be an accomplice; and never less than FirstPPM
// of the stake, nor than SlashPPM of the smallest stake. It is bounded by SlashPPM of the stake. So a machine that
// erred once costs an honest owner of a large stake a small part of it, and a liar loses no less than its lie could
// gain, since the stake of all its seats is at least cover times their bonds (market.Order.Stake). A further
// conviction within MemoryBlocks takes at least SlashPPM of the stake, and the bond.
func (p Penalty) Taken(c Conviction) uint64 {
	half := market.Share(c.Stake, p.SlashPPM)
	if p.MemoryBlocks == 0 {
		return half
	}
	deters := grossed(c.Bond, p.BountyPPM)
	if c.Again {
		return min(c.Stake, max(half, deters))
	}
	return min(half, max(deters, market.Share(c.Stake, p.FirstPPM), market.Share(min(c.Stake, c.Least), p.SlashPPM)))
}

// grossed is the amount of which amount is left after a part in parts per million of it is given away, rounded up.
func grossed(amount uint64, ppm uint32) uint64 {
	kept := uint64(million - min(ppm, million))
	high, low := bits.Mul64(amount, million)
	if high >= kept {
		return math.MaxUint64
	}
	gross, rest := bits.Div64(high, low, kept)
	if rest > 0 && gross < math.MaxUint64 {
		gross++
	}
	return gross
}

// convicted is the conviction of a member of the run.
func (l *ledger) convicted(m crew.Member) Conviction {
	order := market.Order{Terms: l.state.Terms}
	c := Conviction{Stake: l.stake(m.ID), Bond: order.Value(m.Class(), m.Price)}
	if l.book.Least != nil {
		c.Least = l.book.Least(m.Role)
	}
	if l.book.Convicted != nil {
		last := l.book.Convicted(m.ID)
		c.Again = last > 0 && l.book.Height-last <= l.book.Penalty.MemoryBlocks
	}
	return c
}
