package assignment

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Hurry shortens what workers that are not measured have for their units, as the pace of others becomes known.
func (d *Assignment) Hurry() {
	if !slices.ContainsFunc(d.Members, func(m crew.Member) bool { return m.Role == crew.Worker && m.Speed == 0 }) {
		return
	}
	whole := d.TrainDeadlineTimes(crew.Novice) // of all of them: this is done with every commitment
	for i, u := range d.Units {
		blocks := d.Terms.Share(u.Index, whole)
		if u.Status != work.Assigned || u.Deadline <= max(u.AssignedAt+blocks, d.Env.Height+terms.MinBlocks) {
			continue
		}
		if m, _ := d.Member(u.Worker); m.Speed == 0 {
			d.Unit(&d.RoundState, i).Deadline = min(u.Deadline,
				max(u.AssignedAt+blocks<<min(m.Missed, 4), d.Env.Height+terms.MinBlocks))
		}
	}
}

// TakeBack gives a unit back to a former holder, who commits it now. Who has it turns to its next one, or stays at what
// it had before.
func (d *Assignment) TakeBack(i int, to work.PreviousAssignee) {
	u := d.Unit(&d.RoundState, i)
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
	d.Emit(event.Event{Kind: event.UnitReassigned, Round: d.Round, Unit: u.Index, Who: from.Worker, Other: to.Worker,
		Why: reason.Overtaken})
}

// LateUnits takes units past their deadline from their workers. A worker of several has missed one deadline.
// A unit waits for the dispute about its origin, without which its worker may not be able to train.
func (d *Assignment) LateUnits() {
	var late []int
	var workers []string
	for i, u := range d.Units {
		switch {
		case u.Status != work.Assigned || d.Env.Height <= u.Deadline:
			continue
		case originDisputed(d.Progress, *u):
			d.Unit(&d.RoundState, i).Deadline = d.Owed(u.Worker, u.Index, d.Env.Height)
			continue
		}
		late = append(late, i)
		if !slices.Contains(workers, u.Worker) {
			workers = append(workers, u.Worker)
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
	for _, i := range late {
		d.Reassign(i, reason.MissedDeadline)
	}
}
