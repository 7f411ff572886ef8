package worker

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
	"github.com/starling-network/starling/role"
)

// A worker that lost the result of its commitment in the current round, since it was restarted, executes the unit
// again while others still train: the members must be shown the same bits. If the result differs, its machine erred
// once, and it confesses before the audits are drawn: that costs the unit, and a verdict a part of the stake.

// recheck executes a committed unit of the current round again, when no other is to be trained, and confesses a
// commitment that differs.
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

// doubtful reports whether a unit may be executed again to find out whether it has to be confessed. Two executions of
// tolerant work differ in any case.
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
