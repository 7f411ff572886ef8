package transition

import (
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Due is the height by which a member owes what it begins now.
func (d *Draft) Due(id string, blocks int64) int64 {
	m, _ := d.Member(id)
	return d.Env.Height + blocks<<min(m.Missed, 4)
}

// Owed is the height by which a worker owes the commitment of a unit that it begins at a height.
func (d *Draft) Owed(id string, unit uint32, begun int64) int64 {
	return OwedHolding(d, id, unit, begun, Holds(d, id)[id])
}

// OwedHolding is Owed for a worker that has to commit units of some kinds.
func OwedHolding(d *Draft, id string, unit uint32, begun int64, held Kinds) int64 {
	m, _ := d.Member(id)
	blocks := owes(d, m, unit)
	if held.Learns { // it may compute a unit of the other kind first
		blocks = max(blocks, owes(d, m, 0))
	}
	if held.Draws {
		blocks = max(blocks, owes(d, m, d.Terms.Units))
	}
	return begun + blocks<<min(m.Missed, 4)
}

// owes is how many blocks a member has for a unit.
func owes(d *Draft, m crew.Member, unit uint32) int64 {
	if d.Terms.IsDrawing(unit) {
		if m.DrawSpeed == 0 {
			return d.DrawDeadline(crew.Novice)
		}
		return d.DrawDeadline(1)
	}
	blocks := d.TrainDeadline()
	switch {
	case m.Speed == 0:
		blocks = d.TrainDeadlineTimes(crew.Novice)
	case d.Rules >= progress.RoundingIsOwed: // it is dealt what its own speed allows
		blocks = max(blocks, min(schedule.Allowed(m.Pace(), 0), crew.Novice*blocks))
	}
	return d.Terms.Share(unit, blocks)
}

// Kinds are the kinds of units that a worker has to commit, where some units draw and others learn.
type Kinds struct{ Learns, Draws bool }

// Holds are the kinds of units that a worker has to commit, or that each worker has to if none is named. Without units
// that draw it is empty.
func Holds(d *Draft, id string) map[string]Kinds {
	if d.Terms.Rollout.Units == 0 {
		return nil
	}
	held := map[string]Kinds{}
	for _, l := range d.Rounds() {
		for _, u := range l.Units {
			if u.Status == work.Assigned && u.Worker != "" && (id == "" || u.Worker == id) {
				k := held[u.Worker]
				k.Learns, k.Draws = k.Learns || !u.Draws, k.Draws || u.Draws
				held[u.Worker] = k
			}
		}
	}
	return held
}

// Waited is the time from the start of a duty to now, in blocks: at least one, so that it is a measure.
func (d *Draft) Waited(since int64) int64 { return min(terms.MaxBlocks, max(1, d.Env.Height-since)) }

// Expired reports whether one of the deadlines of a phase is over since the tick before: the first after so many
// blocks, each later one after twice as many as the one before.
func (e Env) Expired(since, first int64) bool {
	for over := since + first + 1; over <= e.Height; over += first {
		if e.Passed(over) {
			return true
		}
		first *= 2
	}
	return false
}

// Passed reports whether a height has come since the tick before.
func (e Env) Passed(height int64) bool {
	last := e.Last
	if last == 0 {
		last = e.Height - 1
	}
	return last < height && height <= e.Height
}

// OpeningDeadlines is how many deadlines of an audit a verifier has to open a seal. It may first have to finish what it
// computes, and to compute the state again; silence costs it its place in the run, so the honest must have time.
const OpeningDeadlines = 4
