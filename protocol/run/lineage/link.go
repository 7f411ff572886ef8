package lineage

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/assignment"
	"github.com/starling-network/starling/protocol/run/auditing"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// HiddenLinks takes the units on both sides of a link from their workers, once the deadline of the audit of one of them
// has passed and most members can have its values from neither. Either side alone could have served them. The workers
// leave, and forfeit what backs their work, as the values may hide a lie; which of them has lied cannot be shown. The
// verifier has missed no deadline.
func (d *Rollbacks) HiddenLinks() {
	if d.Rules < progress.HiddenLinks || len(d.Terms.Pipeline.Flops) == 0 {
		return
	}
	for l, i, other := d.hidden(); l != nil && !d.Halted(); l, i, other = d.hidden() {
		d.hide(l, i, other)
	}
}

// hidden finds a unit with such a link, and the unit on its other side. Audits and disputes of other units of its
// replica come first, as they end when it begins again: an accomplice must not void the commitments of a liar.
func (d *Rollbacks) hidden() (l *work.RoundState, i, other int) {
	for _, l := range d.EditAll() {
		for i, u := range l.Units {
			if u.Status != work.Auditing || d.Env.Height <= u.Deadline {
				continue
			}
			other, hidden := auditing.Hidden(d.audits, l, i)
			if !hidden {
				continue
			}
			if !d.othersOpen(l, i) {
				return l, i, other
			}
			d.Unit(l, i).Deadline = d.Env.Height // its verifier waits, too
		}
	}
	return nil, 0, 0
}

// othersOpen reports whether an audit or a dispute of another unit of the replica can still end by an answer.
func (d *Rollbacks) othersOpen(l *work.RoundState, i int) bool {
	n := int(d.Terms.Pipeline.Stages())
	for k := i - i%n; k < i-i%n+n; k++ {
		_, hidden := auditing.Hidden(d.audits, l, k)
		switch s := l.Units[k].Status; {
		case k == i || hidden:
		case s == work.Auditing || s == work.Sealed || s == work.Disputed:
			return true
		}
	}
	return false
}

// hide draws the consequences for the units at two places of a round.
func (d *Rollbacks) hide(l *work.RoundState, places ...int) {
	u, void := *l.Units[places[0]], d.IsVoid(l)
	var gone []string
	for _, k := range places {
		id := l.Units[k].Worker
		m, known := d.Member(id)
		if !known || m.Why == reason.HiddenLink || m.Why == reason.Verdict {
			continue
		}
		d.Emit(event.Event{Kind: event.DepositForfeited, Round: l.Round, Unit: l.Units[k].Index, Who: id,
			Why: reason.HiddenLink})
		d.Leave(id, reason.HiddenLink)
		d.Change(id, func(m *crew.Member) { m.Passed, m.Why = 0, reason.HiddenLink })
		gone = append(gone, id)
	}
	d.seats.CancelProbations(func(e progress.ProbationTask) bool {
		return slices.Contains(gone, e.Worker) || !void && e.Round > l.Round
	})
	switch {
	case void: // nothing is built on it
		for _, k := range places {
			if l.Units[k].Status == work.Assigned {
				continue
			}
			d.audits.CancelDisputes(l, k, reason.HiddenLink)
			v := d.Unit(l, k)
			v.Status, v.Withheld = work.Accepted, true
		}
	case l.Round != d.Round:
		d.Rollback(l.Round, u)
		assignment.Hide(d.units, places...)
	default:
		assignment.Hide(d.units, places...)
	}
	for _, id := range gone {
		for _, l := range d.EditRounds() {
			d.audits.Suspect(l, id)
		}
	}
}
