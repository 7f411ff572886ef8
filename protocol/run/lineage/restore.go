package lineage

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// A round that is rolled back was built on work that a verdict found wrong, which is not the fault of who worked in it.
// What was committed there is void for the model, and is paid like any other work: it is audited as it would have been,
// by verifiers who are paid for that, and who lied in it is convicted. So nobody gains by letting a friend be
// convicted, and nobody loses by the lie of another but what it had not yet committed.

// Its rounds are kept until it is final what they were built on: if the unit that was wrong comes to the same update
// when it is done again, the same checkpoint is attested, and the next round goes on with what was committed in it. So
// a lie that changes nothing costs nobody a round, and nobody is paid twice for the same unit on the same base.

// What is lost when another checkpoint takes its place is paid from the stakes of those who are convicted first
// (package reward).

// maxVoid is how many rounds that were rolled back are remembered at a time. A verdict drops at most MaxWindow rounds,
// and each costs somebody its stake and its place; of more the oldest are given up, and what is open about them is not
// paid.
const maxVoid = 2 * terms.MaxWindow

// markRolledBack takes a round out of the lineage over a conviction, and keeps it until nothing is open about its
// units.
func (d *Rollbacks) markRolledBack(l work.RoundState, culprits []string) {
	if len(l.Units) == 0 {
		return
	}
	if l.Closed == 0 {
		l.Closed = d.Env.Height // audits of what is committed are drawn from a later beacon
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

// freeze ends the audits and disputes of a round for now. Those that were drawn are made if the round goes on
// (restore).
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

// settleVoid closes the rounds that were rolled back about which nothing is open any more. What was not committed when
// they were is nobody's work.
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

// restore goes on with a round that was rolled back, when what it was built on is attested after all. What a convicted
// worker did in it is done again.
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
		case u.Status == work.Assigned:
			u = d.Unit(&d.RoundState, i)
			u.AssignedAt, u.Deadline, u.PreviousAssignees = d.Env.Height, d.Owed(u.Worker, u.Index, d.Env.Height), nil
			u.Attempt = max(u.Attempt, d.FirstAttempt)
		case d.Convicted(u.Worker):
			d.audits.CancelDisputes(&d.RoundState, i, reason.Convicted)
			d.units.Reassign(i, reason.Convicted)
		}
	}
}
