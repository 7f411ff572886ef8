package peer

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
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
	slotWait    = 8 * time.Second        // a request waits so long before the answer is statusBusy
	slotPoll    = 250 * time.Millisecond // a request that waits looks so often whether others have become slow
	slotTime    = 2 * time.Second        // the rate of a reader is measured over so long
	slotLeast   = 32 << 10               // bytes a second: who reads slower than that, or than
	slotPart    = 8                      // this part of what leaves took lately, has no slot while others wait
	slotsShared = 2                      // leaves under way to one peer while others wait
	slowMost    = 64                     // leaves under way without a slot; the slowest is broken off for another
	shareLeaves = 16                     // who stands lower gets one leaf for so many of who stands higher, or
	shareTime   = time.Second            // one in such a time
)

// most is how many of the slots those of a standing may have: the others are never in their hands.
func (s Standing) most(slots int) int {
	return max(1, [standings]int{Stranger: slots / 8, Participant: slots / 2, Member: slots}[s])
}

// leafUpload is one leaf, manifest or refusal on its way to a peer, or waiting for its turn.
type leafUpload struct {
	peer     ID
	standing Standing
	granted  chan struct{} // closed when it may begin
	drop     func()        // breaks it off

	bytes atomic.Int64 // taken by the peer
	slot  bool         // it has one: it is waiting, or slow, otherwise
	began time.Time
	mark  time.Time // when its rate was last measured
	seen  int64     // bytes at that time
	rate  float64   // then, in bytes a second
}

// slots decides which uploads go on. Time comes from the caller.
type slots struct {
	total int

	mu      sync.Mutex
	waiting []*leafUpload // in the order of their coming
	holding []*leafUpload // a slot each
	slow    []*leafUpload // under way without one
	under   map[ID]int    // leaves under way, by peer
	passed  [standings]int
	last    [standings]time.Time // leaf of that standing, and how many of higher ones since
	typical float64              // bytes a second at which leaves went lately
	looked  time.Time            // when slots were last given away by the passing of time
}

func newSlots(total int) *slots { return &slots{total: total, under: map[ID]int{}} }

// ask puts an upload in the queue.
func (q *slots) ask(u *leafUpload, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	u.granted = make(chan struct{})
	u.bytes.Store(0)
	q.waiting = append(q.waiting, u)
	q.schedule(now)
}

// look gives slots away that have become free by the passing of time. Of all that wait, one looks for the others.
func (q *slots) look(now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.looked) >= slotPoll/2 {
		q.looked = now
		q.schedule(now)
	}
}

// end takes an upload out, whether it was under way or waiting.
func (q *slots) end(u *leafUpload, now time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	is := func(other *leafUpload) bool { return other == u }
	if i := slices.IndexFunc(q.waiting, is); i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
		return
	}
	if took := now.Sub(u.began).Seconds(); u.slot && u.standing == Member && took > 0 && u.bytes.Load() >= pieceBytes {
		q.typical += (float64(u.bytes.Load())/took - q.typical) / 16
	}
	q.holding, q.slow = slices.DeleteFunc(q.holding, is), slices.DeleteFunc(q.slow, is)
	if q.under[u.peer]--; q.under[u.peer] == 0 {
		delete(q.under, u.peer)
	}
	q.schedule(now)
}

// schedule lets begin who may.
func (q *slots) schedule(now time.Time) {
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
		q.under[u.peer]++
		q.last[u.standing], q.passed[u.standing] = now, 0
		for s := range u.standing {
			q.passed[s]++
		}
		close(u.granted)
	}
}

// full reports whether somebody waits because those of its standing have as many slots as they may.
func (q *slots) full() bool {
	return slices.ContainsFunc(q.waiting,
		func(u *leafUpload) bool { return q.held(u.standing) >= u.standing.most(q.total) })
}

func (q *slots) held(s Standing) (n int) {
	for _, u := range q.holding {
		if u.standing == s {
			n++
		}
	}
	return n
}

// next is the place of the upload that begins next: of who stands low, if its share is due; else of who stands highest;
// of those of the peer with the fewest under way; of those of the first that came. -1: none may begin.
func (q *slots) next(now time.Time) int {
	if len(q.holding) == q.total {
		return -1
	}
	var held, wait [standings]int
	for _, u := range q.holding {
		held[u.standing]++
	}
	for _, u := range q.waiting {
		wait[u.standing]++
	}
	best, several := -1, slices.ContainsFunc(q.waiting, func(u *leafUpload) bool { return u.peer != q.waiting[0].peer })
	rank := func(u *leafUpload) (due bool, ok bool) {
		busy := false
		for s := u.standing + 1; s < standings; s++ {
			busy = busy || held[s] > 0 || wait[s] > 0
		}
		due = busy && (q.passed[u.standing] >= shareLeaves || now.Sub(q.last[u.standing]) >= shareTime)
		alone := !several && len(q.holding) < q.total/2
		return due, held[u.standing] < u.standing.most(q.total) && (q.under[u.peer] < slotsShared || alone) && (!busy || due)
	}
	bestDue := false
	for i, u := range q.waiting {
		due, ok := rank(u)
		if !ok {
			continue
		}
		switch b := best; {
		case b < 0, due && !bestDue:
		case due != bestDue, u.standing < q.waiting[b].standing:
			continue
		case u.standing == q.waiting[b].standing && q.under[u.peer] >= q.under[q.waiting[b].peer]:
			continue
		}
		best, bestDue = i, due
	}
	return best
}

// demote takes the slots of those who read slowly. They go on without, as long as there are not too many of them.
func (q *slots) demote(now time.Time) {
	least := max(slotLeast, q.typical/slotPart)
	for _, u := range slices.Concat(q.holding, q.slow) {
		took := now.Sub(u.mark)
		if took < slotTime {
			continue
		}
		bytes := u.bytes.Load()
		u.rate = float64(bytes-u.seen) / took.Seconds()
		u.mark, u.seen = now, bytes
		if u.slot && u.rate < least {
			u.slot = false
			q.slow = append(q.slow, u)
		}
	}
	q.holding = slices.DeleteFunc(q.holding, func(u *leafUpload) bool { return !u.slot })
	for len(q.slow) > slowMost {
		worst := slices.MinFunc(q.slow, func(a, b *leafUpload) int {
			if a.standing != b.standing {
				return int(a.standing - b.standing)
			}
			switch {
			case a.rate < b.rate:
				return -1
			case a.rate > b.rate:
				return 1
			}
			return 0
		})
		q.slow = slices.DeleteFunc(q.slow, func(u *leafUpload) bool { return u == worst })
		go worst.drop()
	}
}

// await returns whether an upload may begin, after waiting no longer than told.
func (q *slots) await(ctx context.Context, u *leafUpload, patience time.Duration) bool {
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
			q.end(u, time.Now()) // also if it has been granted in between
			return false
		}
	}
}
