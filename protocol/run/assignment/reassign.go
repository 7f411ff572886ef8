package assignment

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Reassign gives a unit of the current round, or one that draws in an open round, to another worker. Once an audit of a
// unit is drawn, all its later attempts are audited.
func (d *Assignment) Reassign(l *work.RoundState, i int, why string) { d.Reassigning()(l, i, why) }

// Reassigning returns Reassign for several units, which counts the open units once. Between its calls no unit becomes
// open, or is committed.
func (d *Assignment) Reassigning() func(l *work.RoundState, i int, why string) {
	var n *open
	return func(l *work.RoundState, i int, why string) {
		if d.Halted() {
			return
		}
		if staged(d) {
			restart(d, l, why, i)
			return
		}
		if n == nil {
			n = count(d.Draft)
		}
		d.reassign(n, l, i, why)
	}
}

func (d *Assignment) reassign(n *open, l *work.RoundState, i int, why string) {
	old := *l.Units[i]
	exact := why == reason.Odd || why == reason.Outside || why == reason.Distrusted
	next := work.Unit{
		Index:      old.Index,
		Status:     work.Assigned,
		Attempt:    max(old.LastAttempt()+1, d.FirstAttempt),
		AssignedAt: d.Env.Height,
		Audited:    old.Audited || why == reason.Verdict || why == reason.Silent || why == reason.Convicted || exact,
		Exact:      old.Exact || exact,
		Held:       old.Held,
		Looked:     old.Looked || old.Passed,
		Draws:      old.Draws,
		Refused:    old.Refused,
	}
	if !slices.Contains(next.Refused, old.Worker) {
		next.Refused = append(slices.Clip(next.Refused), old.Worker)
	}
	switch {
	case old.Status == work.Assigned:
		next.PreviousAssignees = work.LatestAssignees(append(slices.Clip(old.PreviousAssignees), old.Assignee()))
	case why == reason.Unavailable && !d.Tolerant(old):
		// the worker that committed it first may have copied the late worker's commitment, without the bytes
		next.PreviousAssignees = slices.DeleteFunc(slices.Clone(old.PreviousAssignees),
			func(h work.PreviousAssignee) bool { return h.Worker == old.Worker })
	}
	size := uint64(d.Terms.SegmentsOf(old.Index))
	n.remove(old, size)
	n.add(next, size) // has no worker
	to := d.substitute(n, l.Round, old, next)
	deadline := transition.OwedHolding(d.Draft, to, next.Index, d.Env.Height, n.kinds(to))
	n.remove(next, size)
	now := d.Unit(l, i)
	if to == old.Worker && old.Status == work.Assigned { // none has less to do: it gets more time
		old.Deadline = deadline
		*now = old
		n.add(old, size)
		return
	}
	next.Worker, next.Deadline = to, deadline
	*now = next
	n.add(next, size)
	d.questionOrigin(i)
	d.Emit(
		event.Event{
			Kind:  event.UnitReassigned,
			Round: l.Round,
			Unit:  next.Index,
			Who:   old.Worker,
			Other: next.Worker,
			Why:   why,
		},
	)
	if next.Worker == "" {
		d.Halt(reason.NoWorkers)
	}
}

// substitute draws the worker that gets a unit. Candidates are the workers that may have it and have not failed it, or
// else all. It prefers the fewest open units, late ones included, and among these, in a run with units that draw, the
// fastest; where units differ in size, the earliest end. A late worker keeps the unit unless another has less to do: it
// has already started.
func (d *Assignment) substitute(n *open, round uint32, old, u work.Unit) string {
	all, ending := crew.Learners(d.Crew), n.ending(d, u.Index)
	if u.Draws {
		all = d.Active(crew.Worker)
	}
	fresh := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(u.Refused, id) })
	keeps := old.Status == work.Assigned && d.IsActive(old.Worker)
	for _, pool := range [][]string{fresh, all} {
		if len(pool) == 0 {
			continue
		}
		first := ending(slices.MinFunc(pool, func(a, b string) int { return cmp.Compare(ending(a), ending(b)) }))
		if keeps && first >= ending(old.Worker) {
			continue
		}
		pool = slices.DeleteFunc(pool, func(id string) bool { return ending(id) > first })
		if d.Terms.Rollout.Units > 0 {
			pool = idle(d).fastest(pool, u.Draws)
		}
		return pool[d.Pick("substitute", round, u, len(pool))]
	}
	if keeps {
		return old.Worker
	}
	return ""
}
