package admission

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Of all requests that wait for a slot, one looks for the others whether time has freed one: with as many as hostile
// peers can make wait, looks of each would take a worker's processor, and its members would get nothing.
func TestOneOfThoseWhoWaitLooks(t *testing.T) {
	q, now := NewSlots(2), time.Unix(1_000_000_000, 0)
	for i := range 500 {
		q.ask(&Turn{Peer: peer.ID(fmt.Sprint("peer ", i)), Standing: Participant, Drop: func() {}}, now)
	}
	looks := 0
	for i := range 500 {
		before := q.looked
		if q.look(now.Add(slotPoll + time.Duration(i)*time.Microsecond)); q.looked != before {
			looks++
		}
	}
	if looks != 1 {
		t.Errorf("%d looks in half a millisecond", looks)
	}
	if allocs := testing.AllocsPerRun(10, func() { q.next(now) }); allocs > 0 {
		t.Errorf("to look takes %v allocations", allocs)
	}
}
