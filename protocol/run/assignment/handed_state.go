package assignment

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/work"
)

// had returns which of the workers did each unit in the round before, and has the state it handed on; -1 is none.
func (d *Assignment) had(workers []string) []int {
	had := slices.Repeat([]int{-1}, int(d.Terms.Units))
	if before, ok := d.Before(d.RoundState); ok {
		for i, u := range before.Units {
			had[i] = slices.Index(workers, u.Worker)
		}
	}
	return had
}

// questionOrigin audits what handed on the state that a unit starts from, once the unit is taken from its worker.
// Whoever has it then may not get that state, and would find, when it computes it, another than the committed one: only
// a verifier can do something about that, another than may have passed it as a friend. One that stopped at a drawn
// segment has not seen it.
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

// originDisputed reports whether there is a dispute about a unit of an earlier round whose state led to what a unit
// starts from, unless a worker of the same owner did it, who has that state.
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
