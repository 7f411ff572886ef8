package run

import "slices"

// The deadline of a duty follows what was observed: the median, plus four times the median absolute deviation, plus a
// quarter of the median and at least a floor: to wait for a machine that comes back from a fault costs less than to let
// another begin anew. Who has just missed one is given twice the time the next time, so that a slow machine is measured
// before patience with it ends, and a network that slows down as a whole does not lose all its members.
const (
	remembered = 32 // observations
	trusted    = 8  // observations; with fewer there is more time, see TrainDeadline and adapt
	// times the deadline of others, that a worker has which is not measured: it may still have to fetch what it needs
	novice = 4
	spread = 4
	slack  = 4 // part of the median
	floor  = MinBlocks
)

// TrainDeadline is the number of blocks in which a worker owes its next commitment, to a whole unit. From the first
// observation on it follows what others need: of n observations, fewer than are trusted, it takes trusted/n times what
// they say, up to the terms' own deadline. That is for work of which the worst of being late is that it counts less;
// audits and disputes wait for enough observations.
func (c Crew) TrainDeadline() int64 { return c.patience(1) }

func (c Crew) patience(times int64) int64 {
	n, first := int64(len(c.TrainBlocks)), c.Terms.Deadlines.Train
	if n == 0 {
		return first
	}
	blocks := max(typical(c.TrainBlocks), c.needed(Worker))
	return max(blocks, min(first, blocks*max(times*n, trusted)/n))
}

// AuditDeadline is the number of blocks in which a verifier owes its next answer. To execute a unit again takes as long
// as to execute it, so that whoever answers at once takes nobody else the time that it needs.
func (c Crew) AuditDeadline() int64 {
	return max(MinBlocks, adapt(c.AuditBlocks, c.Terms.Deadlines.Audit), c.needed(Worker), c.needed(Verifier))
}

// needed is the time in which the most members of a role are done with a whole unit; 0 if none is measured. Every
// member counts once, with its stake, however many units it did.
func (c Crew) needed(r Role) int64 {
	speeds := c.speeds(r)
	if len(speeds) == 0 {
		return 0
	}
	middle := weighted(speeds)
	away := make([]share, len(speeds))
	for i, v := range speeds {
		away[i] = share{max(v.blocks-middle, middle-v.blocks), v.weight}
	}
	return allowed(middle, weighted(away))
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
		if u.Status != Assigned || u.Deadline <= max(u.AssignedAt+blocks, d.env.Height+floor) {
			continue
		}
		if m, _ := d.Member(u.Worker); m.Speed == 0 {
			d.unit(&d.RoundState, i).Deadline = min(u.Deadline, max(u.AssignedAt+blocks<<min(m.Missed, 4), d.env.Height+floor))
		}
	}
}

// hasten gives the audits and openings that began when nothing was known of the pace no more time than those that begin
// now: a verifier that never looks holds up the end of a run by what an answer takes, and not by the deadline of the
// terms. One that is not measured has more, as where it begins now.
func (d *audits) hasten() {
	if len(d.AuditBlocks) < trusted {
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

// typical is what the most of those need who were observed.
func typical(seen []int64) int64 {
	middle := median(seen)
	away := make([]int64, len(seen))
	for i, w := range seen {
		away[i] = max(w-middle, middle-w)
	}
	return allowed(middle, median(away))
}

// allowed is a deadline for those who need the middle, give or take a deviation.
func allowed(middle, deviation int64) int64 {
	return middle + spread*deviation + max(floor, middle/slack)
}

// adapt is a deadline that is not below the first one before enough is observed.
func adapt(seen []int64, first int64) int64 {
	if len(seen) >= trusted {
		return typical(seen)
	}
	if len(seen) == 0 {
		return first
	}
	return max(typical(seen), first)
}

// median is the upper one of an even number of values.
func median(values []int64) int64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// waited is the time from the start of a duty to now, in blocks: at least one, so that it is a measure.
func (d *draft) waited(since int64) int64 { return min(MaxBlocks, max(1, d.env.Height-since)) }

// remember appends an observation and forgets the oldest.
func remember(seen []int64, blocks int64) []int64 {
	seen = append(slices.Clip(seen), blocks)
	return seen[max(0, len(seen)-remembered):]
}

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
