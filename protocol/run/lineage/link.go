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
// verifier has missed no deadline. Links of a replica that are hidden at the same time have the same end.
func (d *Rollbacks) HiddenLinks() {
	if d.Rules < progress.HiddenLinks || len(d.Terms.Pipeline.Flops) == 0 {
		return
	}
	for l, places := d.hidden(); l != nil && !d.Halted(); l, places = d.hidden() {
		d.hide(l, places...)
	}
}

// hidden finds the units on both sides of such links of a replica. Audits and disputes of its other units come first,
// as they end when it begins again: an accomplice must not void the commitments of a liar.
func (d *Rollbacks) hidden() (*work.RoundState, []int) {
	for _, l := range d.EditAll() {
		for i, u := range l.Units {
			if u.Status != work.Auditing || d.Env.Height <= u.Deadline {
				continue
			}
			if _, hidden := auditing.Hidden(d.audits, l, i); !hidden {
				continue
			}
			if places, open := d.sides(l, i); !open {
				return l, places
			}
			d.Unit(l, i).Deadline = d.Env.Height // its verifier waits, too
		}
	}
	return nil, nil
}

// sides are the places of the units on both sides of all hidden links of the replica of a unit. It reports whether an
// audit or a dispute of one of its units can still end by an answer.
func (d *Rollbacks) sides(l *work.RoundState, i int) (places []int, open bool) {
	n := int(d.Terms.Pipeline.Stages())
	for k := i - i%n; k < i-i%n+n; k++ {
		u := l.Units[k]
		other, hidden := auditing.Hidden(d.audits, l, k)
		switch {
		case hidden && (k == i || d.Env.Height > u.Deadline):
			for _, side := range []int{k, other} {
				if !slices.Contains(places, side) {
					places = append(places, side)
				}
			}
		case u.Status == work.Auditing || u.Status == work.Sealed || u.Status == work.Disputed:
			open = true
		}
	}
	return places, open
}

// hide draws the consequences for the units at some places of a round.
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
	default:
		if l.Round != d.Round {
			d.Rollback(l.Round, u)
		}
		assignment.Hide(d.units, places...)
	}
	for _, id := range gone {
		for _, l := range d.EditRounds() {
			d.audits.Suspect(l, id)
		}
	}
}
