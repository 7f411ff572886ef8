package assignment

import (
	"cmp"
	"math"
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Where units are stages of replicas (terms.Pipeline), those of a replica are computed at the same time, and none of
// them alone. So they all have the same attempt: when one goes to another worker, the others begin again with it, and
// what they had committed is void. After a verdict that is audited and paid all the same. A worker that waits for
// another says so by the message Missing. So it is known which worker is late: one that another waits for, and that
// waits for no other.

// dealStages deals the units of a round, those of a replica to different workers where there are enough: by
// schedule.Stages, or in turn in runs of earlier rules.
func dealStages(d *Assignment, workers []string) {
	owners := make([]int, d.Terms.Units)
	for i := range owners {
		owners[i] = i % len(workers)
	}
	if n := d.Terms.Pipeline.Stages(); d.Rules >= progress.StagesBySpeed {
		learnRates(d, workers)
		owners = schedule.Stages(d.Terms.Pipeline.Flops, int(d.Terms.Units/n), stageTimes(d, workers))
	}
	for i, w := range owners {
		d.Units = append(d.Units, &work.Unit{Index: uint32(i), Attempt: d.FirstAttempt})
		d.give(i, workers[w])
	}
}

// staged reports whether units are stages of replicas.
func staged(d *Assignment) bool { return len(d.Terms.Pipeline.Flops) > 0 }

// restart lets a replica begin again. The units at some places go to other workers, the others stay with theirs, if
// these still take part.
func restart(d *Assignment, l *work.RoundState, why string, places ...int) {
	n := int(d.Terms.Pipeline.Stages())
	first := places[0] - places[0]%n
	attempt, has := d.FirstAttempt, map[string]int{}
	for k := first; k < first+n; k++ {
		u := l.Units[k]
		attempt = max(attempt, u.LastAttempt()+1)
		if !slices.Contains(places, k) && d.IsActive(u.Worker) {
			has[u.Worker]++
		}
	}
	var left []string
	for _, k := range places {
		left = append(left, l.Units[k].Worker)
	}
	verdict := why == reason.Verdict || why == reason.Silent || why == reason.Convicted
	if verdict {
		void(d, *l, first, n, places)
	}
	for k := first; k < first+n && !d.Halted(); k++ {
		moves := slices.Contains(places, k)
		if !verdict || moves { // else audits and disputes continue there
			d.audits.CancelDisputes(l, k, why)
		}
		old := *l.Units[k]
		next := work.Unit{Index: old.Index, Status: work.Assigned, Worker: old.Worker, Attempt: attempt,
			AssignedAt: d.Env.Height, Audited: old.Audited, Looked: old.Looked || old.Passed, Refused: old.Refused}
		if moves {
			next.Audited = next.Audited || verdict
			next.Refused = refused(d, old, left)
		}
		if moves || !d.IsActive(old.Worker) {
			next.Worker = stageTo(d, l.Round, next, has)
			has[next.Worker]++
		}
		u := d.Unit(l, k)
		*u = next
		if next.Worker == "" {
			d.Halt(reason.NoWorkers)
			return
		}
		u.Deadline = d.Owed(next.Worker, next.Index, d.Env.Height)
		again := event.Event{Kind: event.UnitReassigned, Round: l.Round, Unit: next.Index, Who: old.Worker,
			Other: next.Worker, Why: why}
		switch committed := old.Status != work.Assigned; {
		case !moves && committed && verdict || !moves && !committed && next.Worker == old.Worker:
			again = event.Event{Kind: event.UnitAssigned, Round: l.Round, Unit: next.Index, Who: next.Worker}
		case !moves && committed:
			again.Why = reason.Restarted
		case !moves:
			again.Why = d.WhyGone(old.Worker, reason.WorkerLeft)
		}
		d.Emit(again)
	}
}

// refused adds to the workers that get a unit no more its own, and those that lose other units with it: they may be
// accomplices.
func refused(d *Assignment, u work.Unit, left []string) []string {
	list := slices.Clip(u.Refused)
	for _, w := range left {
		if (d.Rules >= progress.HiddenLinks || w == u.Worker) && !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	return list
}

// Hide gives units of a replica to other workers, the values between which neither of them serves.
func Hide(d *Assignment, places ...int) { restart(d, &d.RoundState, reason.HiddenLink, places...) }

// void keeps the commitments of a replica that begins again after a verdict, but for those at the places that it is
// about.
func void(d *Assignment, l work.RoundState, first, n int, places []int) {
	kept := l
	kept.Units, kept.From = nil, []work.HandedState{{Root: l.Base.Root}} // no round begins like that, and continues it
	committed := false
	for i, u := range l.Units {
		left := &work.Unit{Index: u.Index, Status: work.Assigned, Attempt: math.MaxUint32}
		if i >= first && i < first+n && u.Status != work.Assigned && !slices.Contains(places, i) {
			own := *u
			left, committed = &own, true
		}
		kept.Units = append(kept.Units, left)
	}
	if committed {
		d.Voided = append(d.Voided, kept)
	}
}

// stageTo draws the worker that gets the unit of a stage: one that has not failed it, if there is one, and of these one
// with the fewest units of the replica. has says how many each has. Of those it is one that ends it soonest with the
// units of the round that it has, but for runs of earlier rules.
func stageTo(d *Assignment, round uint32, u work.Unit, has map[string]int) string {
	all := crew.Learners(d.Crew)
	fresh := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(u.Refused, id) })
	for _, pool := range [][]string{fresh, all} {
		if len(pool) == 0 {
			continue
		}
		least := has[slices.MinFunc(pool, func(a, b string) int { return cmp.Compare(has[a], has[b]) })]
		pool = slices.DeleteFunc(pool, func(id string) bool { return has[id] > least })
		if d.Rules >= progress.StagesBySpeed {
			pool = soonest(d, pool, u.Index)
		}
		return pool[d.Pick("stage", round, u, len(pool))]
	}
	return ""
}

// lateReplicas lets replicas begin again of which a unit is past its deadline. Each worker that kept them waiting has
// missed one deadline.
func lateReplicas(d *Assignment) {
	n := int(d.Terms.Pipeline.Stages())
	var late [][]int
	for first := 0; first+n <= len(d.Units); first += n {
		units := d.Units[first : first+n]
		if slices.ContainsFunc(units, func(u *work.Unit) bool {
			return u.Status == work.Assigned && d.Env.Height > u.Deadline
		}) {
			late = append(late, awaited(units, d.Rules >= progress.HiddenLinks))
		}
	}
	if len(late) == 0 {
		return
	}
	if d.Unopened(); d.Halted() {
		return
	}
	var missed []string
	for _, places := range late {
		for _, i := range places {
			if w := d.Units[i].Worker; !slices.Contains(missed, w) {
				missed = append(missed, w)
			}
		}
	}
	for _, id := range missed {
		d.RecordMiss(id, reason.MissedDeadlines)
	}
	for _, places := range late {
		restart(d, &d.RoundState, reason.MissedDeadline, places...)
	}
}

// mayRestart reports whether the units of a replica may begin again without a verdict: none of them is looked at, or
// disputed. Otherwise an accomplice of a worker that lied could give a unit up, and void its commitments.
func mayRestart(d *Assignment, unit uint32) bool {
	return !slices.ContainsFunc(d.Replica(d.Terms, unit), func(u *work.Unit) bool {
		return u.Status == work.Auditing || u.Status == work.Sealed || u.Status == work.Disputed
	})
}

// Spare lets the other stages of a replica see a commitment to one of them before they are late: it may be the word
// that they wait for.
func Spare(d *Assignment, unit uint32) {
	for _, u := range d.Replica(d.Terms, unit) {
		if least := d.Env.Height + terms.MinBlocks; u.Status == work.Assigned && u.Deadline < least {
			d.Unit(&d.RoundState, int(u.Index)).Deadline = least
		}
	}
}
