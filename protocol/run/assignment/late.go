package assignment

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Hurry shortens the deadlines of workers without a measured speed, as the pace of the others becomes known.
func (d *Assignment) Hurry() {
	if !slices.ContainsFunc(d.Members, func(m crew.Member) bool { return m.Role == crew.Worker && m.Speed == 0 }) {
		return
	}
	whole := d.TrainDeadlineTimes(crew.Novice) // of all of them: this is done with every commitment
	held := transition.Holds(d.Draft, "")
	for i, u := range d.Units {
		blocks := d.Terms.Share(u.Index, whole)
		if u.Draws || u.Waits() || u.Status != work.Assigned ||
			u.Deadline <= max(u.AssignedAt+blocks, d.Env.Height+terms.MinBlocks) {
			continue
		}
		if d.Terms.Rollout.Units > 0 && transition.OwedHolding(d.Draft, u.Worker, u.Index, 0, held[u.Worker]) > blocks {
			continue
		}
		if m, _ := d.Member(u.Worker); m.Speed == 0 {
			d.Unit(&d.RoundState, i).Deadline = min(u.Deadline,
				max(u.AssignedAt+blocks<<min(m.Missed, 4), d.Env.Height+terms.MinBlocks))
		}
	}
}

// TakeBack gives a unit back to an earlier worker of it that commits it now. The worker that loses the unit starts its
// next one, or continues the one before.
func (d *Assignment) TakeBack(l *work.RoundState, i int, to work.PreviousAssignee) {
	u := d.Unit(l, i)
	from := u.Assignee()
	u.PreviousAssignees = work.LatestAssignees(
		append(slices.DeleteFunc(slices.Clone(u.PreviousAssignees), func(h work.PreviousAssignee) bool { return h == to }),
			from),
	)
	u.Worker, u.Attempt, u.AssignedAt = to.Worker, to.Attempt, to.AssignedAt
	if from.Worker == to.Worker {
		return
	}
	d.Turn(from.Worker, from.AssignedAt)
	d.Emit(event.Event{Kind: event.UnitReassigned, Round: l.Round, Unit: u.Index, Who: from.Worker, Other: to.Worker,
		Why: reason.Overtaken})
}

// LateUnits takes units past their deadline from their workers. A worker that is late with several units has missed one
// deadline. A unit waits for the dispute about its origin: its worker may not be able to train before it ends.
func (d *Assignment) LateUnits() {
	if staged(d) {
		lateReplicas(d)
		return
	}
	type place struct {
		round *work.RoundState
		unit  int
	}
	var late []place
	var workers []string
	for _, l := range d.EditRounds() {
		for i, u := range l.Units {
			switch {
			case u.Status != work.Assigned || u.Waits() || d.Env.Height <= u.Deadline:
				continue
			case originDisputed(d.Progress, *u):
				d.Unit(l, i).Deadline = d.Owed(u.Worker, u.Index, d.Env.Height)
				continue
			}
			late = append(late, place{l, i})
			if !slices.Contains(workers, u.Worker) {
				workers = append(workers, u.Worker)
			}
		}
	}
	if len(late) > 0 {
		if d.Unopened(); d.Halted() {
			return
		}
	}
	for _, id := range workers {
		d.RecordMiss(id, reason.MissedDeadlines)
	}
	reassign := d.Reassigning()
	for _, p := range late {
		reassign(p.round, p.unit, reason.MissedDeadline)
	}
}
