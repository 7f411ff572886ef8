package assignment

import (
	"maps"
	"slices"
	"testing"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// The open units that Reassigning counts once are, after each unit, those that a new count has.
func TestOpenUnitsAreCountedOnce(t *testing.T) {
	learn, draw := []uint32{900, 3000, 0, 1200}, []uint32{1000, 1100, 900, 0}
	for _, each := range []uint32{1, 3} {
		d := drawingRun(learn, draw, 6, each, 20)
		d.dealApart(d.Shuffled(d.Active(crew.Worker)))
		n := count(d.Draft)
		for round, l := range d.EditRounds() {
			for i := range l.Units {
				d.reassign(n, l, i, reason.MissedDeadline)
				again := count(d.Draft)
				for _, m := range d.Members {
					if n.segments[m.ID] != again.segments[m.ID] || n.kinds(m.ID) != transition.Holds(d.Draft, m.ID)[m.ID] {
						t.Fatalf("round %d, unit %d: %v counted, and %v", round, i, n, again)
					}
				}
			}
		}
		if d.Halted() || len(slices.Collect(maps.Keys(n.segments))) < 3 {
			t.Errorf("all units are of %v", n.segments)
		}
	}
}

// All units of the largest run, given away by one worker that leaves.
func BenchmarkLargestRunGivenAway(b *testing.B) {
	speeds := []uint32{2560, 2560, 2560}
	for b.Loop() {
		b.StopTimer()
		d := drawingRun(speeds, speeds, 128, 7, 20)
		for _, l := range d.EditRounds() {
			for i := range l.Units {
				u := d.Unit(l, i)
				u.Status, u.Worker, u.AssignedAt = work.Assigned, "w000", 1
			}
		}
		b.StartTimer()
		reassign := d.Reassigning()
		for _, l := range d.EditRounds() {
			for i := range l.Units {
				reassign(l, i, reason.WorkerLeft)
			}
		}
	}
}
