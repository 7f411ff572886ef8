// Package admission decides which peers may take from a host, and when: what a peer is to it, how many streams each has
// open, and whose leaf is uploaded next. It reads and sends nothing.
package admission

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/peer/wire"
)

// Standing is what a peer is to a host. Where uploads wait for each other, who stands higher comes first.
type Standing int

// Standings, in ascending order.
const (
	Stranger    Standing = iota // it is not registered
	Participant                 // it is registered in the network
	Member                      // it takes part in a run that this host takes part in
	standings
)

// How upload slots are given. A slot is needed for one leaf at a time.
const (
	SlotWait    = 8 * time.Second        // a request waits for that time before the answer is wire.StatusBusy
	slotPoll    = 250 * time.Millisecond // time after which a waiting request looks for uploads that have become slow
	slotTime    = 2 * time.Second        // time over which the rate of a reader is measured
	slotLeast   = 32 << 10               // bytes a second: a reader slower than that, or than
	slotPart    = 8                      // this part of the usual rate of leaves, has no slot while other readers wait
	slotsShared = 2                      // leaves under way to one peer while others wait
	slowMost    = 64                     // leaves under way without a slot; the slowest is broken off for another
	shareLeaves = 16                     // a lower standing gets one leaf for this number of a higher one, or
	shareTime   = time.Second            // one in that time
)

// most is how many of the slots those of a standing may have: the others are never in their hands.
func (s Standing) most(slots int) int {
	return max(1, [standings]int{Stranger: slots / 8, Participant: slots / 2, Member: slots}[s])
}

// Turn is one leaf, manifest or refusal on its way to a peer, or waiting for its turn.
type Turn struct {
	Peer     peer.ID
	Standing Standing
	Drop     func()       // breaks it off
	Bytes    atomic.Int64 // taken by the peer

	granted chan struct{} // closed when it may begin
	slot    bool          // it has one: it is waiting, or slow, otherwise
	began   time.Time
	mark    time.Time // when its rate was last measured
	seen    int64     // bytes at that time
	rate    float64   // then, in bytes a second
}

// Slots decides which uploads proceed. Time comes from the caller.
type Slots struct {
	total int

	mu      sync.Mutex
	waiting []*Turn         // in the order of their coming
	holding []*Turn         // a slot each
	slow    []*Turn         // under way without one
	under   map[peer.ID]int // leaves under way, by peer
	passed  [standings]int
	last    [standings]time.Time // leaf of that standing, and how many of higher ones since
	typical float64              // bytes a second at which leaves went lately
	looked  time.Time            // when slots were last given away by the passing of time
}

// NewSlots returns slots of which total uploads have one at a time.
func NewSlots(total int) *Slots { return &Slots{total: total, under: map[peer.ID]int{}} }

// ask puts an upload in the queue.
func (q *Slots) ask(u *Turn, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u.granted = make(chan struct{})
	u.Bytes.Store(0)
	q.waiting = append(q.waiting, u)
	q.schedule(now)
}

// look gives slots away that have become free by the passing of time. Of all that wait, one looks for the others.
func (q *Slots) look(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.looked) >= slotPoll/2 {
		q.looked = now
		q.schedule(now)
	}
}

// End takes an upload out, whether it was under way or waiting.
func (q *Slots) End(u *Turn, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	is := func(other *Turn) bool { return other == u }
	if i := slices.IndexFunc(q.waiting, is); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return
	}
	took := now.Sub(u.began).Seconds()
	if u.slot && u.Standing == Member && took > 0 && u.Bytes.Load() >= wire.PieceBytes {
		q.typical += (float64(u.Bytes.Load())/took - q.typical) / 16
	}
	q.holding, q.slow = slices.DeleteFunc(q.holding, is), slices.DeleteFunc(q.slow, is)
	if q.under[u.Peer]--; q.under[u.Peer] == 0 {
		delete(q.under, u.Peer)
	}
	q.schedule(now)
}

// schedule lets begin who may.
func (q *Slots) schedule(now time.Time) {
	if len(q.waiting) > 0 && len(q.holding) == q.total || q.full() {
		q.demote(now)
	}
	for {
		i := q.next(now)
		if i < 0 {
			return
		}
		u := q.waiting[i]
		q.waiting = slices.Delete(q.waiting, i, i+1)
		u.slot, u.began, u.mark, u.seen = true, now, now, 0
		q.holding = append(q.holding, u)
		q.under[u.Peer]++
		q.last[u.Standing], q.passed[u.Standing] = now, 0
		for s := range u.Standing {
			q.passed[s]++
		}
		close(u.granted)
	}
}

// full reports whether an upload waits because those of its standing have as many slots as they may.
func (q *Slots) full() bool {
	return slices.ContainsFunc(q.waiting,
		func(u *Turn) bool { return q.held(u.Standing) >= u.Standing.most(q.total) })
}

func (q *Slots) held(s Standing) (n int) {
	for _, u := range q.holding {
		if u.Standing == s {
			n++
		}
	}
	return n
}

// next is the place of the upload that begins next: one of a low standing, if its share is due; else one of the highest
// standing; among these one of the peer with the fewest under way; among these the first that came. -1: none may begin.
func (q *Slots) next(now time.Time) int {
	if len(q.holding) == q.total {
		return -1
	}
	var held, wait [standings]int
	for _, u := range q.holding {
		held[u.Standing]++
	}
	for _, u := range q.waiting {
		wait[u.Standing]++
	}
	best, several := -1, slices.ContainsFunc(q.waiting, func(u *Turn) bool { return u.Peer != q.waiting[0].Peer })
	rank := func(u *Turn) (due bool, ok bool) {
		busy := false
		for s := u.Standing + 1; s < standings; s++ {
			busy = busy || held[s] > 0 || wait[s] > 0
		}
		due = busy && (q.passed[u.Standing] >= shareLeaves || now.Sub(q.last[u.Standing]) >= shareTime)
		alone := !several && len(q.holding) < q.total/2
		return due, held[u.Standing] < u.Standing.most(q.total) && (q.under[u.Peer] < slotsShared || alone) && (!busy || due)
	}
	bestDue := false
	for i, u := range q.waiting {
		due, ok := rank(u)
		if !ok {
			continue
		}
		switch b := best; {
		case b < 0, due && !bestDue:
		case due != bestDue, u.Standing < q.waiting[b].Standing:
			continue
		case u.Standing == q.waiting[b].Standing && q.under[u.Peer] >= q.under[q.waiting[b].Peer]:
			continue
		}
		best, bestDue = i, due
	}
	return best
}

// demote takes the slots of slow readers. Their uploads proceed without one, as long as there are not too many.
func (q *Slots) demote(now time.Time) {
	least := max(slotLeast, q.typical/slotPart)
	for _, u := range slices.Concat(q.holding, q.slow) {
		took := now.Sub(u.mark)
		if took < slotTime {
			continue
		}
		bytes := u.Bytes.Load()
		u.rate = float64(bytes-u.seen) / took.Seconds()
		u.mark, u.seen = now, bytes
		if u.slot && u.rate < least {
			u.slot = false
			q.slow = append(q.slow, u)
		}
	}
	q.holding = slices.DeleteFunc(q.holding, func(u *Turn) bool { return !u.slot })
	for len(q.slow) > slowMost {
		worst := slices.MinFunc(q.slow, func(a, b *Turn) int {
			if a.Standing != b.Standing {
				return int(a.Standing - b.Standing)
			}
			switch {
			case a.rate < b.rate:
				return -1
			case a.rate > b.rate:
				return 1
			}
			return 0
		})
		q.slow = slices.DeleteFunc(q.slow, func(u *Turn) bool { return u == worst })
		go worst.Drop()
	}
}

// Await returns whether an upload may begin, after waiting no longer than told.
func (q *Slots) Await(ctx context.Context, u *Turn, patience time.Duration) bool {
	q.ask(u, time.Now())
	select {
	case <-u.granted: // as most do
		return true
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	poll := time.NewTicker(slotPoll)
	defer poll.Stop()
	for {
		select {
		case <-u.granted:
			return true
		case now := <-poll.C:
			q.look(now)
		case <-ctx.Done():
			select {
			case <-u.granted:
				return true
			default:
			}
			q.End(u, time.Now()) // also if it has been granted in between
			return false
		}
	}
}
