package fetch

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/peer/wire"
)

// maxSpan is the largest number of leaves of one request of ours. It bounds what a failing peer makes others repeat.
const maxSpan = 8

// span is a range of items from lo to hi, hi excluded.
type span struct{ lo, hi int }

// transfer is the list of items that are still to be fetched: leaves, or the single item that a manifest is. Workers
// take spans from it, deliver the items, and give back what they could not deliver.
type transfer struct {
	limit   int                             // bytes of an item
	most    int                             // bytes of an item that the caller takes
	request func(from, to int) wire.Request // asks for a span
	keep    func(i int, data []byte) error  // verifies (blob.ErrCorrupt) and stores an item

	hedge time.Duration
	width int           // items of a span
	ended chan struct{} // closed when nothing is left to do

	mu    sync.Mutex
	cond  *sync.Cond
	items []item
	left  int
	low   int   // no item below waits for a worker
	over  bool  // complete or stopped
	err   error // of keep, not a peer's fault
}

type item struct {
	done    bool
	flights int     // workers that fetch it now
	by      peer.ID // one of them
	since   time.Time
}

// newTransfer lists the wanted items, ascending, in spans of about width.
func newTransfer(wanted []int, width int, hedge time.Duration) *transfer {
	t := &transfer{hedge: hedge, width: min(max(width, 1), maxSpan), left: len(wanted), ended: make(chan struct{})}
	t.cond = sync.NewCond(&t.mu)
	if len(wanted) > 0 {
		t.items = slices.Repeat([]item{{done: true}}, wanted[len(wanted)-1]+1)
	}
	for _, i := range wanted {
		t.items[i].done = false
	}
	if t.left == 0 {
		t.end()
	}
	return t
}

// take gives a worker of peer id its next span, of at most so many items. If every item is with a worker it waits, if
// told to, for one to be given back or to be late, or for the end. It returns false if there is nothing to do.
func (t *transfer) take(id peer.ID, width int, wait bool) (span, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for !t.over {
		if s, ok := t.next(min(width, t.width)); ok {
			t.assign(s, id)
			return s, true
		}
		if !wait {
			return span{}, false
		}
		if s, ok := t.late(id); ok {
			t.items[s.lo].flights++
			return s, true
		}
		t.cond.Wait()
	}
	return span{}, false
}

// next finds the lowest span that no worker has.
func (t *transfer) next(width int) (span, bool) {
	free := func(i int) bool { return i < len(t.items) && !t.items[i].done && t.items[i].flights == 0 }
	for t.low < len(t.items) && !free(t.low) {
		t.low++
	}
	s := span{t.low, t.low}
	for s.hi-s.lo < width && free(s.hi) {
		s.hi++
	}
	return s, s.hi > s.lo
}

func (t *transfer) assign(s span, id peer.ID) {
	now := time.Now()
	for i := s.lo; i < s.hi; i++ {
		t.items[i] = item{flights: 1, by: id, since: now}
	}
}

// late finds the item that a single other peer has had for the longest, and for too long.
func (t *transfer) late(id peer.ID) (span, bool) {
	found := -1
	for i, it := range t.items {
		if !it.done && it.flights == 1 && it.by != id && time.Since(it.since) >= t.hedge &&
			(found < 0 || it.since.Before(t.items[found].since)) {
			found = i
		}
	}
	return span{found, found + 1}, found >= 0
}

// deliver hands in an item. The error is blob.ErrCorrupt if it is false.
func (t *transfer) deliver(i int, data []byte) error {
	t.mu.Lock()
	done := t.items[i].done || t.over
	t.mu.Unlock()
	if done {
		return nil
	}
	if err := t.keep(i, data); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.items[i].done {
		t.items[i].done = true
		t.left--
	}
	if t.left == 0 {
		t.end()
	}
	return nil
}

// giveBack returns the items of a span that were not delivered.
func (t *transfer) giveBack(s span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := s.lo; i < s.hi; i++ {
		if !t.items[i].done {
			t.items[i].flights--
			t.low = min(t.low, i)
		}
	}
	t.cond.Broadcast()
}

// stop ends the transfer early.
func (t *transfer) stop(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.err = err
		t.end()
	}
}

func (t *transfer) end() {
	if !t.over {
		t.over = true
		close(t.ended)
		t.cond.Broadcast()
	}
}

func (t *transfer) complete() bool { return t.remaining() == 0 }

// remaining is the number of items that are not delivered.
func (t *transfer) remaining() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left
}

// watch wakes idle workers from time to time, to look for late items, and ends the transfer with the context.
func (t *transfer) watch(ctx context.Context) {
	tick := time.NewTicker(max(t.hedge/4, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.cond.Broadcast()
		case <-t.ended:
			return
		case <-ctx.Done():
			t.stop(nil)
			return
		}
	}
}
