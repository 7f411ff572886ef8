package assignment

import (
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// open counts, per worker, the units that are open: the segments of those that it has or is late with, and the units of
// each kind that it has.
type open struct {
	mixed       bool // some units learn, and others draw
	segments    map[string]uint64
	learn, draw map[string]int
}

// count counts the open units of all rounds that are not final.
func count(d *transition.Draft) *open {
	n := &open{mixed: d.Terms.Rollout.Units > 0, segments: map[string]uint64{}, learn: map[string]int{},
		draw: map[string]int{}}
	for _, l := range d.Rounds() {
		for _, u := range l.Units {
			n.add(*u, uint64(d.Terms.SegmentsOf(u.Index)))
		}
	}
	return n
}

// add counts a unit of a size in segments, if it is open, and remove takes it out of the count.
func (n *open) add(u work.Unit, size uint64) { n.change(u, size, 1) }

func (n *open) remove(u work.Unit, size uint64) { n.change(u, -size, -1) }

func (n *open) change(u work.Unit, size uint64, one int) {
	if u.Status != work.Assigned {
		return
	}
	n.segments[u.Worker] += size
	for _, h := range u.PreviousAssignees {
		n.segments[h.Worker] += size
	}
	if u.Draws {
		n.draw[u.Worker] += one
	} else {
		n.learn[u.Worker] += one
	}
}

// kinds are the kinds of open units that a worker has, where there are two.
func (n *open) kinds(worker string) transition.Kinds {
	return transition.Kinds{Learns: n.mixed && n.learn[worker] > 0, Draws: n.mixed && n.draw[worker] > 0}
}
