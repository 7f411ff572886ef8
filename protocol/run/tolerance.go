package run

import (
	"fmt"
	"slices"
)

// Tolerance is how far the update of a unit may be from that of its exact execution, in parts per million, in a run whose
// workers compute with stacks that cannot give the same bits.
//
// What is outside cannot be proven to the chain, so nobody is slashed over it, nothing is disputed and nothing rolled back:
// a round of such a run is attested when its audits are over. An update that two verifiers (or the only one) find outside,
// or most members find odd, is withheld: its worker is not paid, is audited more, and the unit goes to another. That next
// attempt is exact: it is settled by state roots, audited for certain, and can be disputed. So a verifier that withholds
// honest work does so once.
type Tolerance struct {
	DistancePPM uint32 `cbor:"1,keyasint"` // largest distance, relative to the length of the exact update; 0: the run is exact
	CosinePPM   uint32 `cbor:"2,keyasint"` // smallest cosine
}

// Holds reports whether a measured distance and cosine are within.
func (t Tolerance) Holds(distancePPM, cosinePPM uint32) bool {
	return distancePPM <= t.DistancePPM && cosinePPM >= t.CosinePPM
}

// Tolerant reports whether an attempt at a unit is held against the tolerance, and not settled by its state roots.
func (s State) Tolerant(u Unit) bool { return s.Terms.Tolerance.DistancePPM > 0 && !u.Exact }

// Attestable reports whether the checkpoint after the current round can be attested: every unit that it is made of is committed,
// to an update, and, in a tolerant run, nothing is open about any.
func (s State) Attestable() bool {
	open := func(u *Unit) bool { return u.Status != Accepted }
	return s.Combines() && (s.Terms.Tolerance.DistancePPM == 0 || !slices.ContainsFunc(s.Units, open))
}

// Report is a verifier's answer to the audit of a tolerant unit: how far its update is from that of the exact execution.
func (s State) Report(env Env, from string, round, unit, attempt uint32, distancePPM, cosinePPM uint32) (State, []Event, error) {
	u, err := s.admit(from, round, unit, attempt)
	switch {
	case err != nil:
		return s, nil, err
	case !s.Tolerant(u):
		return s, nil, fmt.Errorf("%w: unit %d is settled by its state roots", ErrWrongPhase, unit)
	case u.Status != Auditing:
		return s, nil, fmt.Errorf("%w: no audit of unit %d is open", ErrWrongPhase, unit)
	case u.Verifier != from:
		return s, nil, fmt.Errorf("%w: unit %d is audited by %s", ErrNotYours, unit, u.Verifier)
	}
	d := s.edit(env)
	d.answered(u)
	if s.Terms.Tolerance.Holds(distancePPM, cosinePPM) {
		d.within(int(unit))
	} else {
		d.outside(int(unit))
	}
	after, events := d.done()
	return after, events, nil
}

// within accepts a unit. Who had found it outside is contradicted.
func (d *draft) within(i int) {
	u := d.unit(&d.Lap, i)
	for _, id := range u.Doubts {
		d.unanswered(&d.Lap, i, id, WhyContradicted)
	}
	u.Doubts, u.Passed = nil, true
	d.change(u.Worker, func(m *Member) { m.Passed++ })
	d.emit(Event{Kind: AuditPassed, Round: d.Round, Unit: u.Index, Who: u.Verifier, Other: u.Worker})
	d.accept(&d.Lap, i)
}

// outside asks another verifier, if there is one, and withholds what two found outside.
func (d *draft) outside(i int) {
	u := d.unit(&d.Lap, i)
	if !slices.Contains(u.Doubts, u.Verifier) {
		u.Doubts = append(slices.Clip(u.Doubts), u.Verifier)
	}
	asked := func(id string) bool { return slices.Contains(u.Doubts, id) }
	if others := slices.DeleteFunc(d.Active(Verifier), asked); len(others) > 0 && len(u.Doubts) < 2 {
		d.audit(&d.Lap, i)
		return
	}
	for _, id := range u.Doubts {
		d.emit(Event{Kind: AuditOutside, Round: d.Round, Unit: u.Index, Who: id, Other: u.Worker})
	}
	u.Status, u.Doubts = Accepted, nil // nothing is left to answer
	d.withhold(i, WhyOutside)
}

// withhold takes a unit of the current round from a worker, without proof and without a slash. The next attempt at it is
// exact.
func (d *draft) withhold(i int, why string) {
	worker := d.Units[i].Worker
	d.moot(&d.Lap, i, why)
	d.change(worker, func(m *Member) { m.Passed = 0 })
	d.miss(worker, WhyWithheld)
	d.reassign(i, why)
}
