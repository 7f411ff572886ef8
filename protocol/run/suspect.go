package run

import (
	"fmt"
	"slices"
)

// Suspect is the report of a member that it finds the update of a unit odd beside the others of its round. When more
// than half of the members other than its worker have said so, the unit is audited for certain, if the run wants audits
// at all. Nobody is slashed or kept from pay by it. In a tolerant run the unit is withheld instead, and must be
// reported before its round is attested.
func (s State) Suspect(env Env, from string, id UnitID) (State, []Event, error) {
	u, err := admit(s, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status == Assigned:
		return s, nil, fmt.Errorf("%w: unit %d is not committed", ErrWrongPhase, id.Unit)
	case u.Worker == from:
		return s, nil, fmt.Errorf("%w: unit %d is the sender's own", ErrNotYours, id.Unit)
	case s.Tolerant(u) && (id.Round != s.Round || s.Phase != Attest):
		return s, nil, fmt.Errorf("%w: updates are withheld between the last commitment and the attestation", ErrWrongPhase)
	case slices.Contains(u.OutlierFlags, from):
		return s, nil, fmt.Errorf("%w: unit %d is reported", ErrDuplicate, id.Unit)
	}
	d := s.edit(env)
	l := d.lap(id.Round)
	v := d.unit(l, int(id.Unit))
	v.OutlierFlags = append(slices.Clip(u.OutlierFlags), from)
	switch most := d.most(u.Worker, v.OutlierFlags); {
	case most && s.Tolerant(u):
		d.withhold(int(id.Unit), WhyOdd, nil)
	case most && !u.Audited && s.Terms.AuditPPM > 0 && d.lookers() > 0:
		v.Audited = true
		d.emit(Event{Kind: UnitSuspected, Round: id.Round, Unit: id.Unit, Who: u.Worker})
		if u.Status == Accepted {
			d.audit(l, int(id.Unit))
		}
	}
	after, events := d.finish()
	return after, events, nil
}

// most reports whether a list has more than half of the weight of the active members other than a worker, and its other
// accounts.
func (c Crew) most(worker string, reports []string) bool {
	if len(reports) == 0 {
		return false
	}
	w, _ := c.Member(worker)
	other := func(m Member) bool { return m.ID != worker && m.owner() != w.owner() }
	said := c.weigh(func(m Member) bool { return other(m) && slices.Contains(reports, m.ID) })
	return above(said, 2, c.weigh(other), 1)
}
