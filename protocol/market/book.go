package market

import (
	"cmp"
	"math"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/protocol/run/crew"
)

// OrderBook is all listings of one block, from which the seats of its orders are drawn. It does not depend on the order
// of the listings given.
type OrderBook struct {
	beacon        canon.Digest
	tables        map[kind]*table
	lots          map[key]*lot
	jurisdictions []string // of all lots
}

// kind is a class of work that is paid in a coin: "" is the network's own.
type kind struct {
	denom string
	role  crew.Role
}

type key struct {
	kind
	id string
}

// table is the lots of a kind in order of their accounts, with the sums of their weights.
type table struct {
	lots     []*lot
	sums     []uint64 // of the weights up to and with each lot
	offering uint32   // lots with a slot
}

type lot struct {
	Listing
	weight uint64  // in a draw: the stake, at least one
	left   *uint32 // slots, of the lots of the account in all coins
	under  int     // of the jurisdictions of the book
}

// NewBook makes the book of a block with its beacon.
func NewBook(lots []Listing, beacon canon.Digest) *OrderBook {
	b := &OrderBook{beacon: beacon, lots: make(map[key]*lot, len(lots)), tables: map[kind]*table{}}
	under, slots := map[string]int{}, map[key]*uint32{}
	heaviest := uint64(math.MaxInt64) / uint64(max(1, len(lots))) // so that no sum overflows
	for _, l := range lots {
		if l.Owner == "" {
			l.Owner = l.ID
		}
		account, of := key{kind{"", l.Role}, l.ID}, kind{l.Denom, l.Role}
		if slots[account] == nil {
			slots[account] = &l.Slots
		}
		entry := &lot{Listing: l, left: slots[account], weight: min(max(1, cost.Add(l.Stake, l.Backing)), heaviest)}
		if _, known := under[l.Jurisdiction]; !known {
			under[l.Jurisdiction] = len(b.jurisdictions)
			b.jurisdictions = append(b.jurisdictions, l.Jurisdiction)
		}
		entry.under = under[l.Jurisdiction]
		b.lots[key{of, l.ID}] = entry
		if b.tables[of] == nil {
			b.tables[of] = &table{}
		}
		b.tables[of].lots = append(b.tables[of].lots, entry)
	}
	for _, t := range b.tables {
		t.order()
	}
	return b
}

func (t *table) order() {
	slices.SortFunc(t.lots, func(x, y *lot) int { return cmp.Compare(x.ID, y.ID) })
	sum := uint64(0)
	for _, l := range t.lots {
		sum += l.weight
		t.sums = append(t.sums, sum)
		if *l.left > 0 {
			t.offering++
		}
	}
}

// Take takes a slot of each member of a lease, and subtracts the leased work at its price from the cover of its stake.
func (b *OrderBook) Take(o Order, members []crew.Member) {
	for _, m := range members {
		l := b.lots[key{kind{o.Coin.Denom, m.Class()}, m.ID}]
		if l == nil || *l.left == 0 {
			continue // a member that returns to a run has its slot
		}
		*l.left--
		if l.Cover < math.MaxUint64 {
			l.Cover -= min(l.Cover, o.Value(m.Class(), m.Price))
		}
		if *l.left > 0 {
			continue
		}
		for of, t := range b.tables { // the order does not matter
			if of.role == m.Class() && b.lots[key{of, m.ID}] != nil {
				t.offering--
			}
		}
	}
}

// table is the lots for a class of work of an order.
func (b *OrderBook) table(o *Order, role crew.Role) *table {
	if t := b.tables[kind{o.Coin.Denom, role}]; t != nil {
		return t
	}
	return &table{}
}
