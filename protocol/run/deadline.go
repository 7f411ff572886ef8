package run

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/schedule"
)

// novice is how many times the deadline of others a worker has which is not measured: it may still have to fetch what
// it needs.
const novice = 4

// TrainDeadline is the number of blocks in which a worker owes its next commitment, to a whole unit. From the first
// observation on it follows what others need: of n observations, fewer than are trusted, it takes schedule.Trusted/n
// times what they say, up to the terms' own deadline. That is for work of which the worst of being late is that it
// counts less; audits and disputes wait for enough observations.
func (c Crew) TrainDeadline() int64 { return c.patience(1) }

func (c Crew) patience(times int64) int64 {
	n, first := int64(len(c.TrainBlocks)), c.Terms.Deadlines.Train
	if n == 0 {
		return first
	}
	blocks := max(schedule.Typical(c.TrainBlocks), c.needed(Worker))
	return max(blocks, min(first, blocks*max(times*n, schedule.Trusted)/n))
}

// AuditDeadline is the number of blocks in which a verifier owes its next answer. To execute a unit again takes as long
// as to execute it, so that whoever answers at once takes nobody else the time that it needs.
func (c Crew) AuditDeadline() int64 {
	return max(MinBlocks, schedule.Adapt(c.AuditBlocks, c.Terms.Deadlines.Audit), c.needed(Worker), c.needed(Verifier))
}

// needed is the time in which the most members of a role are done with a whole unit; 0 if none is measured. Every
// member counts once, with its stake, however many units it did.
func (c Crew) needed(r Role) int64 {
	speeds := c.speeds(r)
	if len(speeds) == 0 {
		return 0
	}
	middle := schedule.Weighted(speeds)
	away := make([]schedule.Share, len(speeds))
	for i, v := range speeds {
		away[i] = schedule.Share{Blocks: max(v.Blocks-middle, middle-v.Blocks), Weight: v.Weight}
	}
	return schedule.Allowed(middle, schedule.Weighted(away))
}

// due is the height by which a member owes what it begins now.
func (d *draft) due(id string, blocks int64) int64 {
	m, _ := d.Member(id)
	return d.env.Height + blocks<<min(m.Missed, 4)
}

// owed is the height by which a worker owes the commitment of a unit that it begins at a height.
func (d *draft) owed(id string, unit uint32, begun int64) int64 {
	m, _ := d.Member(id)
	blocks := d.TrainDeadline()
	if m.Speed == 0 {
		blocks = d.patience(novice)
	}
	return begun + d.Terms.Share(unit, blocks)<<min(m.Missed, 4)
}

// hurry shortens what workers that are not measured have for their units, as the pace of others becomes known.
func (d *assignment) hurry() {
	if !slices.ContainsFunc(d.Members, func(m Member) bool { return m.Role == Worker && m.Speed == 0 }) {
		return
	}
	whole := d.patience(novice) // of all of them: this is done with every commitment
	for i, u := range d.Units {
		blocks := d.Terms.Share(u.Index, whole)
		if u.Status != Assigned || u.Deadline <= max(u.AssignedAt+blocks, d.env.Height+MinBlocks) {
			continue
		}
		if m, _ := d.Member(u.Worker); m.Speed == 0 {
			d.unit(&d.RoundState, i).Deadline = min(
				u.Deadline,
				max(u.AssignedAt+blocks<<min(m.Missed, 4), d.env.Height+MinBlocks),
			)
		}
	}
}

// hasten gives the audits and openings that began when nothing was known of the pace no more time than those that begin
// now: a verifier that never looks holds up the end of a run by what an answer takes, and not by the deadline of the
// terms. One that is not measured has more, as where it begins now.
func (d *audits) hasten() {
	if len(d.AuditBlocks) < schedule.Trusted {
		return
	}
	blocks := d.AuditDeadline()
	for _, l := range d.all() {
		for i, u := range l.Units {
			n := blocks
			switch {
			case u.Status == Sealed && !u.Question.IsZero():
				n *= openingPatience
			case u.Status != Auditing:
				continue
			}
			if m, _ := d.Member(u.Verifier); m.Speed == 0 {
				n *= novice
			}
			if due := d.due(u.Verifier, n); due < u.Deadline {
				d.unit(l, i).Deadline = due
			}
		}
	}
}

// waited is the time from the start of a duty to now, in blocks: at least one, so that it is a measure.
func (d *draft) waited(since int64) int64 { return min(MaxBlocks, max(1, d.env.Height-since)) }

// expired reports whether one of the deadlines of a phase is over since the tick before: the first after so many
// blocks, each later one after twice as many as the one before.
func (e Env) expired(since, first int64) bool {
	for over := since + first + 1; over <= e.Height; over += first {
		if e.passed(over) {
			return true
		}
		first *= 2
	}
	return false
}

// passed reports whether a height has come since the tick before.
func (e Env) passed(height int64) bool {
	last := e.Last
	if last == 0 {
		last = e.Height - 1
	}
	return last < height && height <= e.Height
}
