package run

import (
	"fmt"
	"slices"
)

// Suspect is the report of a member that it finds the update of a unit odd beside the others of its round. When more than
// half of the members other than its worker have said so, the unit is audited for certain, if the run wants audits at all.
// Nobody is slashed or kept from pay by it. In a tolerant run the unit is withheld instead, and must be reported before its
// round is attested.
func (s State) Suspect(env Env, from string, round, unit, attempt uint32) (State, []Event, error) {
	u, err := s.admit(from, round, unit, attempt)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status == Assigned:
		return s, nil, fmt.Errorf("%w: unit %d is not committed", ErrWrongPhase, unit)
	case u.Worker == from:
		return s, nil, fmt.Errorf("%w: unit %d is the sender's own", ErrNotYours, unit)
	case s.Tolerant(u) && (round != s.Round || s.Phase != Attest):
		return s, nil, fmt.Errorf("%w: updates are withheld between the last commitment and the attestation", ErrWrongPhase)
	case slices.Contains(u.Suspects, from):
		return s, nil, fmt.Errorf("%w: unit %d is reported", ErrDuplicate, unit)
	}
	d := s.edit(env)
	l := d.lap(round)
	v := d.unit(l, int(unit))
	v.Suspects = append(slices.Clip(u.Suspects), from)
	switch most := d.most(u.Worker, v.Suspects); {
	case most && s.Tolerant(u):
		d.withhold(int(unit), WhyOdd)
	case most && !u.Audited && s.Terms.AuditPPM > 0 && len(d.Active(Verifier)) > 0:
		v.Audited = true
		d.emit(Event{Kind: UnitSuspected, Round: round, Unit: unit, Who: u.Worker})
		if u.Status == Accepted {
			d.audit(l, int(unit))
		}
	}
	after, events := d.done()
	return after, events, nil
}

// most reports whether a list has more than half of the active members other than a worker.
func (d *draft) most(worker string, reports []string) bool {
	others, said := 0, 0
	for _, m := range d.Members {
		if m.Active && m.ID != worker {
			others++
			if slices.Contains(reports, m.ID) {
				said++
			}
		}
	}
	return 2*said > others
}
