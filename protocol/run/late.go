package run

import (
	"fmt"
	"slices"
)

// PreviousAssignee is who had a unit of the current round and was late with it. Its unit went to another, but what it
// has done is not lost: while nobody has committed the unit it may still commit, to its own attempt, and then has the
// unit again. So a machine that comes back from a fault within the round is paid for what it did, and one slower than
// its deadline is measured all the same. A unit that was committed and is taken away again starts over without former
// holders: nothing that was begun before the reason to take it away may count. Only where the update of exact work
// could not be had they may still commit.
type PreviousAssignee struct {
	Worker     string `cbor:"1,keyasint"`
	Attempt    uint32 `cbor:"2,keyasint"`
	AssignedAt int64  `cbor:"3,keyasint"`
}

// maxFormer is how many former holders of a unit are remembered, the latest.
const maxFormer = 16

func former(all []PreviousAssignee) []PreviousAssignee { return all[max(0, len(all)-maxFormer):] }

// holder is who has a unit.
func (u Unit) holder() PreviousAssignee {
	return PreviousAssignee{Worker: u.Worker, Attempt: u.Attempt, AssignedAt: u.AssignedAt}
}

// PreviousAssignments returns the attempts at a unit of the current round that a worker was late with and may still
// commit.
func (p Progress) PreviousAssignments(worker string, unit uint32) []PreviousAssignee {
	if m, _ := p.Member(worker); !m.Active || uint64(unit) >= uint64(len(p.Units)) || p.Units[unit].Status != Assigned {
		return nil
	}
	return slices.DeleteFunc(
		slices.Clone(p.Units[unit].PreviousAssignees),
		func(h PreviousAssignee) bool { return h.Worker != worker },
	)
}

// last is the highest attempt that was given.
func (u Unit) last() uint32 {
	attempt := u.Attempt
	for _, h := range u.PreviousAssignees {
		attempt = max(attempt, h.Attempt)
	}
	return attempt
}

// late reports whether a unit was committed by a former holder.
func (u Unit) late() bool { return u.Attempt != u.last() }

// heldBy finds the attempt that a worker may commit to.
func heldBy(s State, from string, id UnitID) (PreviousAssignee, error) {
	if err := sender(s, from); err != nil {
		return PreviousAssignee{}, err
	}
	if id.Round == s.Round {
		for _, h := range s.PreviousAssignments(from, id.Unit) {
			if h.Attempt == id.Attempt {
				return h, nil
			}
		}
	}
	u, err := find(s, id)
	switch {
	case err != nil && id.Round == s.Round && uint64(id.Unit) < uint64(len(s.Units)) &&
		s.Units[id.Unit].Status != Assigned:
		return PreviousAssignee{}, fmt.Errorf(
			"%w: unit %d went to %s, who has committed it",
			err,
			id.Unit,
			s.Units[id.Unit].Worker,
		)
	case err != nil:
		return PreviousAssignee{}, err
	case u.Worker != from:
		return PreviousAssignee{}, fmt.Errorf("%w: unit %d is assigned to %s", ErrNotYours, id.Unit, u.Worker)
	case u.Status != Assigned:
		return PreviousAssignee{}, fmt.Errorf("%w: unit %d is committed", ErrDuplicate, id.Unit)
	}
	return u.holder(), nil
}

// takeBack gives a unit back to a former holder, who commits it now. Who has it turns to its next one, or stays at what
// it had before.
func (d *assignment) takeBack(i int, to PreviousAssignee) {
	u := d.unit(&d.RoundState, i)
	from := u.holder()
	u.PreviousAssignees = former(
		append(slices.DeleteFunc(slices.Clone(u.PreviousAssignees), func(h PreviousAssignee) bool { return h == to }), from),
	)
	u.Worker, u.Attempt, u.AssignedAt = to.Worker, to.Attempt, to.AssignedAt
	if from.Worker == to.Worker {
		return
	}
	d.turn(from.Worker, from.AssignedAt)
	d.emit(Event{Kind: UnitReassigned, Round: d.Round, Unit: u.Index, Who: from.Worker, Other: to.Worker,
		Why: WhyOvertaken})
}

// lateUnits takes units past their deadline from their workers. A worker of several has missed one deadline.
// A unit waits for the dispute about its origin, without which its worker may not be able to train.
func (d *assignment) lateUnits() {
	var late []int
	var workers []string
	for i, u := range d.Units {
		switch {
		case u.Status != Assigned || d.env.Height <= u.Deadline:
			continue
		case originDisputed(d.State, *u):
			d.unit(&d.RoundState, i).Deadline = d.owed(u.Worker, u.Index, d.env.Height)
			continue
		}
		late = append(late, i)
		if !slices.Contains(workers, u.Worker) {
			workers = append(workers, u.Worker)
		}
	}
	if len(late) > 0 {
		if d.unopened(); d.halted() {
			return
		}
	}
	for _, id := range workers {
		d.recordMiss(id, WhyMissedDeadlines)
	}
	for _, i := range late {
		d.reassign(i, WhyMissedDeadline)
	}
}
