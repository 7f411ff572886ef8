package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/audit"
)

// draw decides once, in a block after the last commitment, which units are audited. The beacon of that block was unknown
// to every worker when it committed.
func (d *draft) draw() {
	if d.Phase != Exchange || d.Drawn || d.env.Height <= d.Since || d.env.Beacon.IsZero() {
		return
	}
	d.Drawn = true
	for i, u := range d.Units {
		if u.Status != Committed {
			continue
		}
		m, _ := d.Member(u.Worker)
		rate := audit.Rate(d.Terms.AuditPPM, m.Passed)
		switch {
		case len(d.Active(Verifier)) == 0 && d.Terms.AuditPPM > 0:
			d.halt(WhyNoVerifiers)
			return
		case u.Audited || audit.Draw(d.env.Beacon, d.Terms.Job, d.Round, u.Index, u.Attempt, rate):
			d.audit(i)
		default:
			d.accept(i)
		}
	}
}

// Pass is a verifier's answer that a commitment is right.
func (s State) Pass(env Env, from string, round, unit uint32) (State, []Event, error) {
	d, err := s.answer(env, from, round, unit)
	if err != nil {
		return s, nil, err
	}
	u := d.Units[unit]
	d.change(u.Worker, func(m *Member) { m.Passed++ })
	d.emit(Event{Kind: AuditPassed, Unit: unit, Who: from, Other: u.Worker})
	d.accept(int(unit))
	after, events := d.done()
	return after, events, nil
}

// Challenge is a verifier's answer that a commitment is wrong. It opens a dispute, which a Verdict ends.
func (s State) Challenge(env Env, from string, round, unit uint32) (State, []Event, error) {
	d, err := s.answer(env, from, round, unit)
	if err != nil {
		return s, nil, err
	}
	d.Units[unit].Status = Disputed
	d.emit(Event{Kind: AuditFailed, Unit: unit, Who: from, Other: d.Units[unit].Worker})
	after, events := d.done()
	return after, events, nil
}

// answer takes note that a verifier has answered an audit. It turns to its next one.
func (s State) answer(env Env, from string, round, unit uint32) (*draft, error) {
	u, err := s.admit(from, round, unit)
	switch {
	case err != nil:
		return nil, err
	case u.Status != Auditing:
		return nil, fmt.Errorf("%w: no audit of unit %d is open", ErrWrongPhase, unit)
	case u.Verifier != from:
		return nil, fmt.Errorf("%w: unit %d is audited by %s", ErrNotYours, unit, u.Verifier)
	}
	d := s.edit(env)
	d.Checks = remember(d.Checks, d.waited(u.AssignedAt))
	d.change(from, func(m *Member) { m.Missed = 0 })
	for i := range d.Units {
		if v := &d.Units[i]; v.Status == Auditing && v.Verifier == from {
			v.AssignedAt, v.Deadline = env.Height, d.due(from, d.AuditDeadline())
		}
	}
	return d, nil
}

// Verdict ends the dispute about a unit. The loser takes no further part. If it is the worker, the unit is done again by
// another, and what else it committed in the round is audited; if it is the challenger, another verifier audits the unit,
// or with none left it counts.
func (s State) Verdict(env Env, round, unit uint32, workerLies bool, loser string) (State, []Event, error) {
	switch {
	case s.Phase == Done || s.Phase == Halted:
		return s, nil, fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	case round != s.Round:
		return s, nil, fmt.Errorf("%w: round %d, the run is in round %d", ErrStale, round, s.Round)
	case uint64(unit) >= uint64(len(s.Units)):
		return s, nil, fmt.Errorf("%w: unit %d, the round has %d", ErrNoUnit, unit, len(s.Units))
	case s.Units[unit].Status != Disputed:
		return s, nil, fmt.Errorf("%w: unit %d is not disputed", ErrWrongPhase, unit)
	}
	u := s.Units[unit]
	party := u.Verifier
	if workerLies {
		party = u.Worker
	}
	if loser != party {
		return s, nil, fmt.Errorf("%w: %s cannot lose this dispute, %s does", ErrNotYours, loser, party)
	}
	d := s.edit(env)
	if workerLies {
		d.convict(int(unit))
	} else {
		d.acquit(int(unit))
	}
	after, events := d.done()
	return after, events, nil
}

func (d *draft) convict(i int) {
	u := d.Units[i]
	d.emit(Event{Kind: DisputeEnded, Unit: u.Index, Who: u.Verifier, Other: u.Worker, Why: WhyWrongWork})
	d.leave(u.Worker, WhyVerdict)
	d.change(u.Worker, func(m *Member) { m.Passed, m.Why = 0, WhyVerdict })
	d.reassign(i, WhyVerdict)
	for j := range d.Units {
		switch v := &d.Units[j]; {
		case v.Worker != u.Worker || v.Audited:
		case v.Status == Committed:
			v.Audited = true
		case v.Status == Accepted:
			d.audit(j)
		}
	}
}

func (d *draft) acquit(i int) {
	u := d.Units[i]
	d.emit(Event{Kind: DisputeEnded, Unit: u.Index, Who: u.Verifier, Other: u.Worker, Why: WhyFalseChallenge})
	d.leave(u.Verifier, WhyFalseChallenge)
	if len(d.Active(Verifier)) == 0 {
		d.accept(i)
		return
	}
	d.audit(i)
}

// lateAudits draws other verifiers for the audits that are past their deadline. However many they are, a verifier has
// missed one deadline; the last verifier is kept.
func (d *draft) lateAudits() {
	var late []int
	var verifiers []string
	for i, u := range d.Units {
		if u.Status != Auditing || d.env.Height <= u.Deadline {
			continue
		}
		late = append(late, i)
		d.unanswered(i, WhyMissedDeadline)
		if !slices.Contains(verifiers, u.Verifier) {
			verifiers = append(verifiers, u.Verifier)
		}
	}
	for _, id := range verifiers {
		if len(d.Active(Verifier)) > 1 {
			d.miss(id, WhyMissedAudits)
		} else {
			d.change(id, func(m *Member) { m.Missed++ })
		}
	}
	for _, i := range late {
		d.audit(i)
	}
}
