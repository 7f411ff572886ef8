package market

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
)

// urn draws lots of a role that fit an order, each with a chance in proportion to its weight among those that are
// left. The digests that decide are made of the beacon of the block, so that no party chooses them, and of the job, so
// that no two orders of a block draw alike.
//
// A draw first tries lots of the whole role, and tries again if one does not fit, which takes few tries where many
// fit. After a number of tries the urn lists the lots that fit, and draws from these: the chances are the same either
// way.
type urn struct {
	*wish
	*table
	seed  canon.Digest
	count uint64 // digests used
	cap   uint64 // price

	out  map[*lot]bool // drawn, or put aside
	pool []*lot        // the lots that fit and are not out, when it was listed
	tree []uint64      // Fenwick tree over the weights of the pool
	left uint64        // their sum
}

// tries is how often a draw looks among all lots before it lists those that fit.
const tries = 24

func (b *OrderBook) urn(w *wish, role crew.Role, priceCap uint64) *urn {
	return &urn{
		wish: w, table: b.table(w.order, role), cap: priceCap, out: map[*lot]bool{},
		seed: canon.Sum("starling/draw/1", b.beacon[:], []byte(w.order.ID), []byte{byte(role)}),
	}
}

// fits reports whether a lot may be drawn at all.
func (u *urn) fits(l *lot) bool {
	return l.Price <= u.cap && l.Earning == u.earning && u.misfit(l) == Fits
}

// below returns a number below a bound, each as likely as the others but for one part in 2^64.
func (u *urn) below(n uint64) uint64 {
	var counter [8]byte
	binary.BigEndian.PutUint64(counter[:], u.count)
	u.count++
	d := canon.Sum("starling/draw/number/1", u.seed[:], counter[:])
	return bits.Rem64(binary.BigEndian.Uint64(d[:8]), binary.BigEndian.Uint64(d[8:16]), n)
}

// next draws a lot and takes it out; nil if none is left.
func (u *urn) next() *lot {
	if u.pool == nil && len(u.lots) > 0 {
		for range tries {
			at := u.below(u.sums[len(u.sums)-1])
			i, exact := slices.BinarySearch(u.sums, at)
			if exact {
				i++ // a lot has the numbers from the sum before it up to its own
			}
			if l := u.lots[i]; !u.out[l] && u.fits(l) {
				u.out[l] = true
				return l
			}
		}
		u.list()
	}
	if u.left == 0 {
		return nil
	}
	i := u.find(u.below(u.left))
	l := u.pool[i]
	u.out[l] = true
	u.left -= l.weight
	for j := i + 1; j <= len(u.pool); j += j & -j {
		u.tree[j] -= l.weight
	}
	return l
}

// list finds the lots that are left to be drawn.
func (u *urn) list() {
	u.pool, u.left = []*lot{}, 0
	for _, l := range u.lots {
		if !u.out[l] && u.fits(l) {
			u.pool = append(u.pool, l)
			u.left += l.weight
		}
	}
	u.tree = make([]uint64, len(u.pool)+1)
	for i, l := range u.pool {
		j := i + 1
		u.tree[j] += l.weight
		if up := j + j&-j; up < len(u.tree) {
			u.tree[up] += u.tree[j]
		}
	}
}

// find returns the place in the pool that has a number.
func (u *urn) find(at uint64) int {
	i := 0
	for step := 1 << bits.Len(uint(len(u.pool))); step > 0; step >>= 1 {
		if next := i + step; next <= len(u.pool) && u.tree[next] <= at {
			i = next
			at -= u.tree[next]
		}
	}
	return i
}

// back puts lots back that were put aside.
func (u *urn) back(lots []*lot) {
	for _, l := range lots {
		delete(u.out, l)
	}
	if len(lots) > 0 {
		u.pool, u.left = nil, 0
	}
}

// draw draws up to n lots that a rule allows, given those before. Those that it does not allow are in the urn again
// after it.
func (u *urn) draw(n int, allowed func(*lot) bool, seat func(*lot)) {
	var aside []*lot
	for n > 0 {
		l := u.next()
		if l == nil {
			break
		}
		if !allowed(l) {
			aside = append(aside, l)
			continue
		}
		seat(l)
		n--
	}
	u.back(aside)
}
