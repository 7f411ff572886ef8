package run

import (
	"github.com/starling-network/starling/protocol/run/transition"
)

import "testing"

// A run that is not ticked in every block misses no deadline of its phase: it is over in the first tick after it.
func TestDeadlinesBetweenTicksAreNotMissed(t *testing.T) {
	for _, every := range []int64{1, 2, 3, 7, 50} {
		for since := range int64(every) {
			var over, last int64
			for now := since; now < since+200; now++ {
				if now%every != 0 {
					continue
				}
				env := transition.Env{Height: now, Last: last}
				if last == 0 {
					env.Last = now - 1
				}
				if last = now; env.Expired(since, 10) {
					over++
				}
			}
			if want := int64(4); every < 10 && over != want { // after 11, 31, 71 and 151 blocks
				t.Errorf("ticked every %d blocks from %d on: %d deadlines, want %d", every, since, over, want)
			} else if over == 0 {
				t.Errorf("ticked every %d blocks from %d on: no deadline", every, since)
			}
		}
	}
}
