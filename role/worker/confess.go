package worker

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"

	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// A worker that does not hold what it committed to in the current round, since it was started again meanwhile, executes
// it again while others still train. What it shows the members must have the same bits anyway. If it finds something
// else its machine has erred once, and it says so before the audits are drawn: that costs the unit, and a verdict a
// part of the stake.

// recheck executes a committed unit of the current round again, when nothing else is to be trained, and confesses one
// that comes to something else.
func (w *Worker) recheck(at work.UnitID, base terms.Checkpoint, u *work.Unit) []role.Action {
	right, computed := w.computed[at]
	switch {
	case computed && !w.stands(at, right, u.Commit):
		return []role.Action{role.Confess{Work: at}}
	case !computed && len(w.run.Work(w.id)) == 0:
		return []role.Action{role.Train{Work: at, Base: base}}
	}
	return nil
}

// doubtful reports whether a unit may be executed again to find out whether it has to be confessed. What two executions
// of tolerant work come to is not the same.
func (w *Worker) doubtful(round uint32, u *work.Unit) bool {
	m, _ := w.run.Member(w.id)
	return m.Active && u.Status == work.Committed && round == w.run.Round && w.run.Confessible() && !w.run.Tolerant(*u)
}

// stands reports whether a commitment is what the worker makes of a result, with a planted fault or without.
func (w *Worker) stands(at work.UnitID, right, committed work.Commitment) bool {
	return right.Update == committed.Update && right.UpdateCID == committed.UpdateCID &&
		right.HandedState.Root == committed.HandedState.Root &&
		(slices.Equal(right.Segments, committed.Segments) ||
			slices.Equal(audit.Plant(w.nonce(at), right.Segments), committed.Segments))
}
