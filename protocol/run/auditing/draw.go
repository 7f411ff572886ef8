package auditing

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// A verifier of an audit is drawn from the whole network where the environment can draw one (Env.Draw), and otherwise
// from the members with a seat. So an account that controls the seats of a run does not control its audits.

// drawn draws a verifier for a unit from the network. The verifier is no worker of the run, shares no owner with the
// worker of the unit or its earlier verifiers, and is not excluded from the run for misconduct.
func (d *Audits) drawn(l *work.RoundState, u work.Unit) (crew.Member, bool) {
	if d.Env.Draw == nil {
		return crew.Member{}, false
	}
	barred := append([]string{u.Worker, u.Verifier, u.FirstAttempt}, u.NoData...)
	for _, x := range u.Looks {
		barred = append(barred, x.Verifier)
	}
	for _, id := range barred[:len(barred):len(barred)] {
		if m, known := d.Member(id); known {
			barred = append(barred, m.OwnerID())
		}
	}
	for m := range d.Env.Draw(u.ID(l.Round)) {
		old, known := d.Member(m.ID)
		free := !known && len(d.Members) < terms.MaxMembers+crew.MaxGuests || old.Active && old.Role == crew.Verifier ||
			old.MayBeGuest()
		if !free || slices.Contains(barred, m.ID) || slices.Contains(barred, m.OwnerID()) {
			continue
		}
		if known {
			m.Price = old.Price // the price that it is paid
		}
		if most := d.HighestAsk(); m.Price <= most || d.Affords(u.Index, m.Price-most) {
			return m, true
		}
	}
	return crew.Member{}, false
}

// seated draws a verifier for a unit from the members with a seat: another than the current one, if there is another.
func (d *Audits) seated(l *work.RoundState, u work.Unit) (string, bool) {
	pool := d.Active(crew.Verifier)
	pool = slices.DeleteFunc(pool,
		func(id string) bool { return id == u.FirstAttempt }) // the verifier that passed it is not drawn a second time
	others := slices.DeleteFunc(slices.Clone(pool), func(id string) bool { return id == u.Verifier })
	if len(others) > 0 {
		pool = others
	}
	if len(pool) == 0 {
		return "", false
	}
	return pool[d.Pick("verifier", l.Round, u, len(pool))], true
}

// Lookers is how many verifiers can be drawn for a unit: those that have a seat, and one more for the network.
func (d *Audits) Lookers() int {
	n := len(d.Active(crew.Verifier))
	if d.Env.Draw != nil {
		n++
	}
	return n
}

// appoint gives the audit of a unit to a verifier. One without a seat becomes a guest, and has more time for its first
// answer: it must fetch the state that the unit starts from.
func (d *Audits) appoint(l *work.RoundState, i int, m crew.Member) {
	u := d.Unit(l, i)
	blocks := d.seats.Summon(m)
	if u.Status != work.Auditing || u.Verifier != m.ID {
		u.AssignedAt = d.Env.Height
	}
	u.Status, u.Verifier, u.Audited = work.Auditing, m.ID, true
	u.Deadline = d.Due(m.ID, blocks)
	d.Emit(
		event.Event{
			Kind:    event.AuditDrawn,
			Round:   l.Round,
			Unit:    u.Index,
			Who:     u.Verifier,
			Other:   u.Worker,
			Segment: u.Segment,
		},
	)
}

// Again draws a second verifier for a unit that one has passed, with the chance audit.SecondPPM: of another owner,
// and without the answer of the first. It reports whether it did. A block without a beacon cannot draw, and a later
// chance could be foreseen: there the unit waits for a second verifier in any case.
func (d *Audits) Again(l *work.RoundState, i int) bool {
	u := d.Unit(l, i)
	if d.Env.Beacon.IsZero() && u.FirstAttempt == "" && !d.IsVoid(l) && d.Env.Draw != nil &&
		d.Affords(u.Index, d.HighestAsk()) {
		u.FirstAttempt, u.Passed = u.Verifier, false
		d.Audit(l, i)
		return true
	}
	if u.FirstAttempt != "" || d.IsVoid(l) ||
		!audit.Draw(d.Env.Beacon, d.Terms.Job+"/second", l.Round, u.Index, u.Attempt, audit.SecondPPM) {
		return false
	}
	second, ok := d.drawn(l, *u)
	if !ok || !d.Affords(u.Index, max(second.Price, d.HighestAsk())) {
		return false
	}
	u.FirstAttempt, u.Passed = u.Verifier, false
	d.appoint(l, i, second)
	return true
}
