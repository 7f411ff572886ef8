package run

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"
)

// A verifier of an audit is drawn from the whole network where the environment can draw one (Env.Draw), and from those
// who have a seat otherwise: who chose the seats of a run, or was lucky with them, does not choose who looks.

// drawn draws a verifier for a unit from the network. It is no worker of the run, works for nobody whom the worker of
// the unit or who has looked at it works for, and is not out of the run for something that it did.
func (d *audits) drawn(l *RoundState, u Unit) (Member, bool) {
	if d.env.Draw == nil {
		return Member{}, false
	}
	barred := []string{u.Worker, u.Verifier, u.FirstAttempt}
	for _, x := range u.Looks {
		barred = append(barred, x.Verifier)
	}
	for _, id := range barred[:len(barred):len(barred)] {
		if m, known := d.Member(id); known {
			barred = append(barred, m.owner())
		}
	}
	for m := range d.env.Draw(u.ID(l.Round)) {
		old, known := d.Member(m.ID)
		free := !known && len(d.Members) < MaxMembers+MaxGuests || old.Active && old.Role == Verifier || old.mayBeGuest()
		if !free || slices.Contains(barred, m.ID) || slices.Contains(barred, m.owner()) {
			continue
		}
		if known {
			m.Price = old.Price // that it is paid
		}
		if most := d.asked(); m.Price <= most || d.affords(u.Index, m.Price-most) {
			return m, true
		}
	}
	return Member{}, false
}

// seated draws a verifier for a unit from those who have a seat: another than it has, if there is another.
func (d *audits) seated(l *RoundState, u Unit) (string, bool) {
	pool := d.Active(Verifier)
	pool = slices.DeleteFunc(
		pool,
		func(id string) bool { return id == u.FirstAttempt },
	) // who has passed it looks no second time
	others := slices.DeleteFunc(slices.Clone(pool), func(id string) bool { return id == u.Verifier })
	if len(others) > 0 {
		pool = others
	}
	if len(pool) == 0 {
		return "", false
	}
	return pool[d.pick("verifier", l.Round, u, len(pool))], true
}

// lookers is how many may be asked to look at a unit: those who have a seat, and one more for the network.
func (d *audits) lookers() int {
	n := len(d.Active(Verifier))
	if d.env.Draw != nil {
		n++
	}
	return n
}

// appoint gives the audit of a unit to a verifier. One that has no seat becomes a guest, and has more time for its
// first answer: it must fetch what the unit starts from.
func (d *audits) appoint(l *RoundState, i int, m Member) {
	u := d.unit(l, i)
	blocks := d.seats.summon(m)
	if u.Status != Auditing || u.Verifier != m.ID {
		u.AssignedAt = d.env.Height
	}
	u.Status, u.Verifier, u.Audited = Auditing, m.ID, true
	u.Deadline = d.due(m.ID, blocks)
	d.emit(Event{Kind: AuditDrawn, Round: l.Round, Unit: u.Index, Who: u.Verifier, Other: u.Worker, Segment: u.Segment})
}

// summon makes somebody who has no seat a guest, and says how many blocks it has for its first answer.
func (d *seats) summon(m Member) int64 {
	blocks := d.AuditDeadline()
	if !d.active(m.ID) {
		d.welcome(m)
		if g, _ := d.Member(m.ID); g.Speed == 0 {
			blocks *= novice
		}
	}
	return blocks
}

// again asks a second verifier about a unit that one has passed, if that is drawn: of another owner, and without a word
// of the first. It reports whether it does. In a block without a beacon nobody can be drawn, and whether one is would
// be known before: the unit waits for a second verifier in any case.
func (d *audits) again(l *RoundState, i int) bool {
	u := d.unit(l, i)
	if d.env.Beacon.IsZero() && u.FirstAttempt == "" && !d.isVoid(l) && d.env.Draw != nil &&
		d.affords(u.Index, d.asked()) {
		u.FirstAttempt, u.Passed = u.Verifier, false
		d.audit(l, i)
		return true
	}
	if u.FirstAttempt != "" || d.isVoid(l) ||
		!audit.Draw(d.env.Beacon, d.Terms.Job+"/second", l.Round, u.Index, u.Attempt, audit.SecondPPM) {
		return false
	}
	second, ok := d.drawn(l, *u)
	if !ok || !d.affords(u.Index, max(second.Price, d.asked())) {
		return false
	}
	u.FirstAttempt, u.Passed = u.Verifier, false
	d.appoint(l, i, second)
	return true
}
