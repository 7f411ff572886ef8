package market

import (
	"bytes"
	"cmp"
	"container/heap"
	"maps"
	"math"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run"
)

// Book is all lots of one block, so that many orders are matched with many offers without looking at each pair: lots lie on
// a shelf for every role and region, each ordered once, and an order walks the shelves only as far as it has to. The order of
// the lots given does not matter.
type Book struct {
	shelves       []*shelf
	lots          map[key]*lot
	offering      map[run.Role]uint32 // lots with a slot
	jurisdictions []string            // of all lots
	holders       map[string][]string
}

type key struct {
	role run.Role
	id   string
}

type shelf struct {
	role   run.Role
	region string
	lots   []*lot // by price, latency, height and draw
	gone   int    // how many have no slot left
}

type lot struct {
	Lot
	draw  canon.Digest // of this block's beacon: nobody could choose it
	left  uint32       // slots
	shelf *shelf
	under int // of the jurisdictions of the book
}

// NewBook orders lots. holders are the accounts that hold the data of an order already, by what Order.Data says.
func NewBook(lots []Lot, holders map[string][]string, beacon canon.Digest) *Book {
	b := &Book{lots: make(map[key]*lot, len(lots)), holders: holders, offering: map[run.Role]uint32{}}
	type place struct {
		role   run.Role
		region string
	}
	shelves, under := map[place]*shelf{}, map[string]int{}
	for _, l := range lots {
		at := place{l.Role, l.Region}
		if shelves[at] == nil {
			shelves[at] = &shelf{role: l.Role, region: l.Region}
		}
		entry := &lot{Lot: l, left: l.Slots, shelf: shelves[at], draw: canon.Sum("starling/match/2", beacon[:], []byte(l.ID), []byte{byte(l.Role)})}
		entry.shelf.lots = append(entry.shelf.lots, entry)
		b.lots[key{l.Role, l.ID}] = entry
		if _, known := under[l.Jurisdiction]; !known {
			under[l.Jurisdiction] = len(b.jurisdictions)
			b.jurisdictions = append(b.jurisdictions, l.Jurisdiction)
		}
		entry.under = under[l.Jurisdiction]
		if l.Slots > 0 {
			b.offering[l.Role]++
		}
	}
	b.shelves = slices.SortedFunc(maps.Values(shelves), func(x, y *shelf) int {
		return cmp.Or(cmp.Compare(x.role, y.role), cmp.Compare(x.region, y.region))
	})
	for _, s := range b.shelves {
		slices.SortFunc(s.lots, (*lot).compare)
	}
	return b
}

// compare is the order of lots of a shelf: the best first.
func (l *lot) compare(m *lot) int {
	return cmp.Or(cmp.Compare(l.Price, m.Price), l.later(m))
}

// later compares lots of one price that are equally near: what is closer to its peers first, then what is offered longer,
// then as the beacon draws.
func (l *lot) later(m *lot) int {
	// Not measured, 0, wraps to the largest.
	return cmp.Or(cmp.Compare(l.Latency-1, m.Latency-1), cmp.Compare(l.At, m.At), bytes.Compare(l.draw[:], m.draw[:]))
}

// Take takes a slot of each member of a lease, and from what its stake covers the work that it is leased.
func (b *Book) Take(o Order, members []run.Member) {
	for _, m := range members {
		l := b.lots[key{m.Role, m.ID}]
		if l == nil || l.left == 0 {
			continue // who comes back to a run has its slot
		}
		l.left--
		if l.Cover < math.MaxUint64 {
			l.Cover -= min(l.Cover, o.Value(m.Role, m.Price))
		}
		if l.left > 0 {
			continue
		}
		b.offering[m.Role]--
		if l.shelf.gone++; l.shelf.gone > len(l.shelf.lots)/4 {
			l.shelf.sweep()
		}
	}
}

// sweep takes off the shelf what has no slot left. Walks look at what is on it, so that the shelf gets another list.
func (s *shelf) sweep() {
	s.lots = slices.DeleteFunc(slices.Clone(s.lots), func(l *lot) bool { return l.left == 0 && l.Slots > 0 })
	s.gone = 0
}

// stream walks the lots that fit an order, up to a price, the best first: by price; then those that hold the data; then
// those in the region that the order wants to be near; then as on their shelf. It is a heap of what is left of each shelf.
type stream struct {
	*wish
	priceCap uint64
	heads    []head
	held     map[string]bool
}

// head is the part of a shelf that is still to come; the first of it fits.
type head struct {
	rest []*lot
	near bool
	held bool // rest are the holders, from all shelves
}

// walk begins to walk the lots of a role.
func (b *Book) walk(w *wish, role run.Role, priceCap uint64) *stream {
	s := &stream{wish: w, priceCap: priceCap}
	if holders := b.holding(w.order, role); len(holders) > 0 {
		s.held = map[string]bool{}
		for _, l := range holders {
			s.held[l.ID] = true
		}
		s.begin(head{rest: holders, held: true})
	}
	for _, shelf := range b.shelves {
		if shelf.role == role && w.order.in(shelf.region) == Fits {
			s.begin(head{rest: shelf.lots, near: w.order.near(shelf.region)})
		}
	}
	heap.Init(s)
	return s
}

func (s *stream) begin(h head) {
	if s.advance(&h) {
		s.heads = append(s.heads, h)
	}
}

// holding lists the lots of who holds the data of an order.
func (b *Book) holding(o *Order, role run.Role) (lots []*lot) {
	if o.Data == "" {
		return nil
	}
	for _, id := range b.holders[o.Data] {
		if l := b.lots[key{role, id}]; l != nil && o.in(l.Region) == Fits && !slices.Contains(lots, l) {
			lots = append(lots, l)
		}
	}
	slices.SortFunc(lots, func(x, y *lot) int {
		if nx, ny := o.near(x.Region), o.near(y.Region); x.Price == y.Price && nx != ny {
			if nx {
				return -1
			}
			return 1
		}
		return x.compare(y)
	})
	return lots
}

// near reports whether a region is the one in which offers of one price are preferred.
func (o *Order) near(region string) bool { return o.Near != "" && region == o.Near }

// advance goes to the first lot that fits; false says that there is none.
func (s *stream) advance(h *head) bool {
	for ; len(h.rest) > 0; h.rest = h.rest[1:] {
		l := h.rest[0]
		if l.Price > s.priceCap {
			return false
		}
		if s.misfit(l) == Fits && (h.held || !s.held[l.ID]) {
			return true
		}
	}
	return false
}

// next returns the next lot; nil if there is none.
func (s *stream) next() *lot {
	if len(s.heads) == 0 {
		return nil
	}
	h := &s.heads[0]
	l := h.rest[0]
	h.rest = h.rest[1:]
	if s.advance(h) {
		heap.Fix(s, 0)
	} else {
		heap.Pop(s)
	}
	return l
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (s *stream) Len() int { return len(s.heads) }

// Less reports whether a head comes before another.
func (s *stream) Less(i, j int) bool {
	x, y := &s.heads[i], &s.heads[j]
	l, m := x.rest[0], y.rest[0]
	switch {
	case l.Price != m.Price:
		return l.Price < m.Price
	case x.held != y.held:
		return x.held
	case x.near != y.near:
		return x.near
	}
	return l.later(m) < 0
}

// Swap swaps two heads.
func (s *stream) Swap(i, j int) { s.heads[i], s.heads[j] = s.heads[j], s.heads[i] }

// Push adds a head; nothing does.
func (s *stream) Push(h any) { s.heads = append(s.heads, h.(head)) }

// Pop removes the last head.
func (s *stream) Pop() any {
	last := s.heads[len(s.heads)-1]
	s.heads = s.heads[:len(s.heads)-1]
	return last
}
