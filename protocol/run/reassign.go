package run

import (
	"cmp"
	"slices"
)

// reassign gives a unit of the current round to another worker. Once an audit of a unit is drawn, all its later
// attempts are audited.
func (d *assignment) reassign(i int, why string) {
	if d.halted() {
		return
	}
	old := *d.Units[i]
	exact := why == WhyOdd || why == WhyOutside || why == WhyDistrusted
	next := Unit{
		Index:      old.Index,
		Status:     Assigned,
		Attempt:    max(old.last()+1, d.FirstAttempt),
		AssignedAt: d.env.Height,
		Audited:    old.Audited || why == WhyVerdict || why == WhySilent || why == WhyConvicted || exact,
		Exact:      old.Exact || exact,
		Held:       old.Held,
		Looked:     old.Looked || old.Passed,
		Refused:    old.Refused,
	}
	if !slices.Contains(next.Refused, old.Worker) {
		next.Refused = append(slices.Clip(next.Refused), old.Worker)
	}
	switch {
	case old.Status == Assigned:
		next.PreviousAssignees = former(append(slices.Clip(old.PreviousAssignees), old.holder()))
	case why == WhyUnavailable && !d.Tolerant(old):
		// who committed it first may have copied the commitment of who was late, without the bytes
		next.PreviousAssignees = slices.DeleteFunc(
			slices.Clone(old.PreviousAssignees),
			func(h PreviousAssignee) bool { return h.Worker == old.Worker },
		)
	}
	now := d.unit(&d.RoundState, i)
	*now = next // nobody's while open units are counted
	next.Worker = d.substitute(old, next)
	next.Deadline = d.owed(next.Worker, next.Index, d.env.Height)
	if next.Worker == old.Worker && old.Status == Assigned { // nobody else has less to do: it has more time
		old.Deadline = next.Deadline
		*now = old
		return
	}
	*now = next
	d.questionOrigin(i)
	d.emit(Event{Kind: UnitReassigned, Round: d.Round, Unit: next.Index, Who: old.Worker, Other: next.Worker, Why: why})
	if next.Worker == "" {
		d.halt(WhyNoWorkers)
	}
}

// substitute draws who gets a unit: of those who have not failed it, or else of all, one with the fewest open units,
// those that it is late with among them; where units have different sizes, one that is done first. Who is late keeps
// the unit unless another has less to do: it is at work, and the other is not.
func (d *assignment) substitute(old, u Unit) string {
	all, ending := d.Active(Worker), d.ending(u.Index)
	fresh := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(u.Refused, id) })
	keeps := old.Status == Assigned && d.active(old.Worker)
	for _, pool := range [][]string{fresh, all} {
		if len(pool) == 0 {
			continue
		}
		first := ending(slices.MinFunc(pool, func(a, b string) int { return cmp.Compare(ending(a), ending(b)) }))
		if keeps && first >= ending(old.Worker) {
			continue
		}
		pool = slices.DeleteFunc(pool, func(id string) bool { return ending(id) > first })
		return pool[d.pick("substitute", d.Round, u, len(pool))]
	}
	if keeps {
		return old.Worker
	}
	return ""
}

// load counts the segments of open units of the round that workers have or are late with.
func (d *assignment) load() map[string]uint64 {
	open := make(map[string]uint64)
	for _, u := range d.Units {
		if u.Status != Assigned {
			continue
		}
		size := uint64(d.Terms.SegmentsOf(u.Index))
		open[u.Worker] += size
		for _, h := range u.PreviousAssignees {
			open[h.Worker] += size
		}
	}
	return open
}
