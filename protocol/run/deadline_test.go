package run

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/transition"
)

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

// A worker that is measured at half the speed of the others has the time that its units take it, and is not late; at
// most it has crew.Novice times that of the others. In runs of the rules before, its deadline was that of the others.
func TestDeadlineOfASlowWorkerFollowsItsSpeed(t *testing.T) {
	for _, c := range []struct {
		rules progress.Rules
		pace  uint32 // blocks for a unit; the others need 20
		want  int64
	}{{0, 40, 25}, {progress.RoundingIsOwed, 40, 50}, {progress.RoundingIsOwed, 400, 100}} {
		many := newTerms()
		many.Units = 40
		g := begin(t, many, newMembers(5, 1))
		g.s.Rules, g.s.TrainBlocks = c.rules, slices.Repeat([]int64{20}, schedule.Trusted)
		for k := range g.s.Members {
			g.s.Members[k].Speed = 20 << 8
		}
		slow, _ := g.s.Index("w0")
		g.s.Members[slow].Speed, g.s.Members[slow].Owed = c.pace<<8, schedule.OneUnit
		g.tick(1)
		units := g.s.Work("w0")
		if len(units) == 0 {
			t.Fatalf("%+v: it has no unit", c)
		}
		if got := units[0].Deadline - units[0].AssignedAt; got != c.want {
			t.Errorf("%+v: %d blocks", c, got)
		}
	}
}
