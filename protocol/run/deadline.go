package run

import "slices"

// The deadline of a duty follows what was observed: the median, plus four times the median absolute deviation, plus a
// floor. Who has just missed one is given twice the time the next time, so that a slow machine is measured before patience
// with it ends, and a network that slows down as a whole does not lose all its members.
const (
	remembered = 32 // observations
	trusted    = 8  // observations; with fewer, the terms' own deadline holds at least
	spread     = 4
	floor      = 5 // blocks
)

// TrainDeadline is the number of blocks in which a worker owes its next commitment.
func (s State) TrainDeadline() int64 { return adapt(s.Waits, s.Terms.Deadlines.Train) }

// AuditDeadline is the number of blocks in which a verifier owes its next answer.
func (s State) AuditDeadline() int64 { return adapt(s.Checks, s.Terms.Deadlines.Audit) }

// due is the height by which a member owes what it begins now.
func (d *draft) due(id string, blocks int64) int64 {
	m, _ := d.Member(id)
	return d.env.Height + blocks<<min(m.Missed, 4)
}

func adapt(seen []int64, first int64) int64 {
	if len(seen) == 0 {
		return first
	}
	middle := median(seen)
	away := make([]int64, len(seen))
	for i, w := range seen {
		away[i] = max(w-middle, middle-w)
	}
	blocks := middle + spread*median(away) + floor
	if len(seen) < trusted {
		return max(blocks, first)
	}
	return blocks
}

// median is the upper one of an even number of values.
func median(values []int64) int64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// waited is the time from the start of a duty to now, in blocks: at least one, so that it is a measure.
func (d *draft) waited(since int64) int64 { return min(MaxBlocks, max(1, d.env.Height-since)) }

// remember appends an observation and forgets the oldest.
func remember(seen []int64, blocks int64) []int64 {
	seen = append(slices.Clip(seen), blocks)
	return seen[max(0, len(seen)-remembered):]
}

// expired reports whether one of the deadlines of a phase is just over: the first after so many blocks, each later one
// after twice as many as the one before.
func expired(since, now, first int64) bool {
	for over := since + first + 1; over <= now; over += first {
		if over == now {
			return true
		}
		first *= 2
	}
	return false
}
