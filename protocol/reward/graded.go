package reward

import (
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/protocol/reward/penalty"
	"github.com/starling-network/starling/protocol/run/crew"
)

const million = 1_000_000

// convicted describes the conviction of a member of the run, from which package penalty computes the amount that one
// of its stakes loses. The stake in the coin of the order has the bond of the seat; the stake in the network's own coin
// has the smallest stake of a role.
func (l *ledger) convicted(m crew.Member, p purse) penalty.Conviction {
	c := penalty.Conviction{Stake: l.holds(p)}
	if p == l.purse(m.ID) {
		order := market.Order{Terms: l.state.Terms}
		c.Bond = order.Value(m.Class(), m.Price)
	}
	if l.book.Least != nil && p.coin.Own() {
		c.Least = l.book.Least(m.Role)
	}
	if l.book.Convicted != nil {
		last := l.book.Convicted(m.ID)
		c.Again = last > 0 && l.book.Height-last <= l.book.Penalty.MemoryBlocks
	}
	return c
}
