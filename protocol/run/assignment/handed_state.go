package assignment

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// had returns, per unit, the index of the worker that did it in the round before and has its carried state; -1: none.
func (d *Assignment) had(workers []string) []int {
	had := slices.Repeat([]int{-1}, int(d.Terms.Units))
	if before, ok := d.Before(d.RoundState); ok {
		for i, u := range before.Units {
			had[i] = slices.Index(workers, u.Worker)
		}
	}
	return had
}

// questionOrigin audits the unit whose carried state this unit starts from, once this unit is taken from its worker.
// The next worker may not get that state, and would find another root than the committed one when it computes the state
// itself. Only a verifier can answer that, and not the one that passed the unit, which may be a friend of the worker. A
// verifier that stopped at the end of a drawn segment has not seen the state.
func (d *Assignment) questionOrigin(i int) {
	before, ok := d.Before(d.RoundState)
	if !ok {
		return
	}
	l := d.EditRound(before.Round)
	switch u := l.Units[i]; {
	case d.audits.Lookers() == 0 || u.Passed && u.Segment == 0 && d.audits.Lookers() == 1:
	case u.Passed && !d.Spares(u.Index):
	case u.Status == work.Committed || u.Status == work.Disputed:
		// it is audited when its audits are drawn, or the dispute is over
		u = d.Unit(l, i)
		u.Audited, u.Segment = true, 0
	case u.Status == work.Auditing && u.Segment != 0, u.Status == work.Accepted:
		u = d.Unit(l, i)
		u.Passed, u.Segment = false, 0
		d.audits.Audit(l, i)
	}
}

// originDisputed reports whether there is a dispute about a unit of an earlier round whose carried state u starts from.
// It is false if a worker of the same owner did that unit, since it has the state.
func originDisputed(s progress.Progress, u work.Unit) bool {
	w, _ := s.Member(u.Worker)
	for l, ok := s.Before(s.RoundState); ok; l, ok = s.Before(l) {
		o := l.Units[u.Index]
		if m, _ := s.Member(o.Worker); o.Status == work.Disputed && m.OwnerID() != w.OwnerID() {
			return true
		}
	}
	return false
}
