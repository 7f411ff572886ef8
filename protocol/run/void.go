package run

import "slices"

// A round that is rolled back was built on work that a verdict found wrong, which is not the fault of who worked in it. What
// was committed there is void for the model, and is paid like any other work: it is audited as it would have been, by
// verifiers who are paid for that, and who lied in it is convicted. So nobody gains by letting a friend be convicted, and
// nobody loses by the lie of another but what it had not yet committed.

// maxVoid is how many rounds that were rolled back are remembered at a time. A verdict drops at most MaxWindow rounds, and
// each costs somebody its stake and its place; of more the oldest are given up, and what is open about them is not paid.
const maxVoid = 2 * MaxWindow

// avoid takes a round out of the lineage, and keeps it until nothing is open about its units. In a tolerant run nothing that
// is open can be settled, since only what is attested was measured; nor in one whose units hand on a state, since the state
// that they started from may be the lie, which nobody else has.
func (d *draft) avoid(l Lap) {
	if len(l.Units) == 0 {
		return
	}
	if l.Closed == 0 {
		l.Closed = d.env.Height // audits of what is committed are drawn from a later beacon
	}
	d.Void = append(slices.Clip(d.Void), l)
	if d.Terms.Tolerance.DistancePPM > 0 || d.Terms.Carry > 0 {
		d.giveUp(len(d.Void) - 1)
	}
	for len(d.Void) > maxVoid {
		d.giveUp(0)
	}
}

// giveUp ends all that is open about a round that was rolled back.
func (d *draft) giveUp(k int) {
	l := &d.Void[k]
	for i := range l.Units {
		d.moot(l, i, WhyRolledBack)
	}
	d.dropped(k)
}

// dropped closes a round that was rolled back.
func (d *draft) dropped(k int) {
	l := d.Void[k]
	d.Void = slices.Delete(d.Void, k, k+1)
	d.emit(Event{Kind: RoundDropped, Round: l.Round, Lap: &l})
}

// isVoid reports whether a lap was rolled back.
func (d *draft) isVoid(l *Lap) bool {
	for k := range d.Void {
		if l == &d.Void[k] {
			return true
		}
	}
	return false
}

// Forfeited reports whether a unit is of a round that was rolled back, and of a worker that is convicted. It counts for nothing
// and is not paid, so that there is nothing left to challenge: a second verdict on it would be paid again.
func (s State) Forfeited(u Duty) bool {
	return s.convicted(u.Worker) && slices.ContainsFunc(s.Void, func(l Lap) bool { return l.has(u.Round, u.Index, u.Attempt) })
}

func (s State) convicted(id string) bool {
	m, _ := s.Member(id)
	return m.Why == WhyVerdict
}

// forfeit ends what is open about the units that are forfeited.
func (d *draft) forfeit() {
	for k := range d.Void {
		l := &d.Void[k]
		for i, u := range l.Units {
			if u.Status != Assigned && d.convicted(u.Worker) {
				d.moot(l, i, WhyConvicted)
				d.unit(l, i).Status = Accepted
			}
		}
	}
}

// settleVoid closes the rounds that were rolled back about which nothing is open any more. What was not committed when they
// were is nobody's work.
func (d *draft) settleVoid() {
	open := func(u *Unit) bool { return u.Status != Accepted && u.Status != Assigned }
	for k := 0; k < len(d.Void); {
		if slices.ContainsFunc(d.Void[k].Units, open) {
			k++
			continue
		}
		d.dropped(k)
	}
}
