package lineage

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// A round that is rolled back was built on work that a verdict found wrong, which is not the fault of its workers. Its
// commitments are void for the model, and are paid like any other work: they are audited as before, by verifiers that
// are paid for it, and a worker that cheated there is convicted. So no worker gains by letting a friend be convicted,
// and the fraud of another costs a worker only what it had not yet committed.

// A round that was rolled back is kept until its base is final: if the wrong unit has the same update when it is done
// again, the same checkpoint is attested, and the next round continues with the commitments in it. So a fraud that
// changes nothing costs no honest worker a round, and no unit is paid twice on the same base.

// If another checkpoint takes its place, the lost work is paid first from the stakes of the convicted workers (package
// reward).

// maxVoid is how many rounds that were rolled back are stored at a time. A verdict drops at most MaxWindow rounds, and
// each costs a convicted party its stake and its seat; if there are more, the oldest are abandoned, and their open
// audits are not paid.
const maxVoid = 2 * terms.MaxWindow

// markRolledBack takes a round out of the lineage over a conviction, and keeps it until nothing is open about its
// units.
func (d *Rollbacks) markRolledBack(l work.RoundState, culprits []string) {
	if len(l.Units) == 0 {
		return
	}
	if l.Closed == 0 {
		l.Closed = d.Env.Height // audits of its commitments are drawn from a later beacon
	}
	if l.Filled == 0 && d.Terms.Rollout.Units > 0 {
		l.Filled = d.Env.Height
	}
	l.Culprits = culprits
	d.RolledBack = append(slices.Clip(d.RolledBack), l)
	if d.Terms.Freezes() {
		d.freeze(&d.RolledBack[len(d.RolledBack)-1])
	}
	for len(d.RolledBack) > maxVoid {
		d.abandonRound(0)
	}
}

// freeze ends the open audits and disputes of a round that was rolled back. If restore continues the round, the audits
// that were drawn are made then.
func (d *Rollbacks) freeze(l *work.RoundState) {
	for i, u := range l.Units {
		d.audits.CancelDisputes(l, i, reason.RolledBack)
		if u.Status != work.Assigned && u.Status != work.Accepted {
			u = d.Unit(l, i)
			u.Audited = u.Audited || u.Status != work.Committed
			u.Status, u.Verifier, u.Passed, u.Seal, u.Question = work.Committed, "", false, canon.Digest{}, canon.Digest{}
		}
	}
}

// abandonRound ends all that is open about a round that was rolled back.
func (d *Rollbacks) abandonRound(k int) {
	l := &d.RolledBack[k]
	for i := range l.Units {
		d.audits.CancelDisputes(l, i, reason.RolledBack)
	}
	d.dropped(k)
}

// dropped closes a round that was rolled back.
func (d *Rollbacks) dropped(k int) {
	l := d.RolledBack[k]
	d.RolledBack = slices.Delete(d.RolledBack, k, k+1)
	d.ReturnDeposits(l, reason.RolledBack)
	d.Emit(event.Event{Kind: event.RoundDropped, Round: l.Round, RoundState: &l})
}

// forfeit ends what is open about the units that are forfeited.
func (d *Rollbacks) forfeit() {
	for k := range d.RolledBack {
		l := &d.RolledBack[k]
		for i, u := range l.Units {
			if u.Status != work.Assigned && d.Convicted(u.Worker) {
				d.audits.CancelDisputes(l, i, reason.Convicted)
				d.Unit(l, i).Status = work.Accepted
			}
		}
	}
}

// settleVoid closes the rounds that were rolled back and have nothing open any more. Units without a commitment at the
// rollback count for no worker.
func (d *Rollbacks) settleVoid() {
	open := func(u *work.Unit) bool { return u.Status != work.Accepted && u.Status != work.Assigned }
	for k := 0; k < len(d.RolledBack); {
		if d.kept(&d.RolledBack[k]) || !d.Terms.Freezes() && slices.ContainsFunc(d.RolledBack[k].Units, open) {
			k++
			continue
		}
		d.dropped(k)
	}
}

// kept reports whether a round that was rolled back may be restored: another checkpoint may still become its base.
func (d *Rollbacks) kept(l *work.RoundState) bool {
	return l.Round > d.Oldest() && !(d.lost() && len(d.Open) == 0)
}

// restore continues a round that was rolled back, when its base is attested after all. The units that a convicted
// worker did in it are done again.
func (d *Rollbacks) restore() {
	same := func(a, b work.HandedState) bool { return a.Root == b.Root }
	k := slices.IndexFunc(d.RolledBack, func(l work.RoundState) bool {
		return l.Round == d.Round && l.Base.Root == d.Base.Root && slices.EqualFunc(l.From, d.From, same)
	})
	if k < 0 {
		return
	}
	l := d.RolledBack[k]
	d.RolledBack = slices.Delete(d.RolledBack, k, k+1)
	l.Base, l.From, l.Culprits = d.Base, d.From, nil
	d.RoundState = l
	d.Reopen()
	d.Emit(event.Event{Kind: event.RoundRestored, Round: d.Round})
	for i, u := range d.Units {
		switch {
		case u.Waits():
		case u.Status == work.Assigned:
			u = d.Unit(&d.RoundState, i)
			u.AssignedAt, u.Deadline, u.PreviousAssignees = d.Env.Height, d.Owed(u.Worker, u.Index, d.Env.Height), nil
			u.Attempt = max(u.Attempt, d.FirstAttempt)
		case d.Convicted(u.Worker):
			d.audits.CancelDisputes(&d.RoundState, i, reason.Convicted)
			d.units.Reassign(&d.RoundState, i, reason.Convicted)
		}
	}
}
