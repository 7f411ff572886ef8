package run

import (
	"fmt"

	"github.com/starling-network/starling/protocol/audit"
)

// openingPatience is how many deadlines of an audit a verifier has to open a seal. It may first have to finish what it
// computes, and to compute the state again; silence costs it its place in the run, so the honest must have time.
const openingPatience = 4

// Subject is the audit that the seal of a unit answers.
func (p Progress) Subject(round uint32, u Unit) audit.Subject {
	return audit.Subject{Verifier: u.Verifier, Job: p.Terms.Job, Round: round, Unit: u.Index, Attempt: u.Attempt,
		Segment: u.Segment}
}

// ask draws where the seals of earlier blocks must be opened.
func (d *audits) ask() {
	if d.env.Beacon.IsZero() {
		return
	}
	for _, l := range d.all() {
		for i, u := range l.Units {
			if u.Status == Sealed && u.Question.IsZero() && d.env.Height > u.AssignedAt && !d.Tolerant(*u) {
				u = d.unit(l, i)
				u.Question = audit.Question(d.env.Beacon, d.Subject(l.Round, *u))
				u.AssignedAt, u.Deadline = d.env.Height, d.due(u.Verifier, openingPatience*d.AuditDeadline())
			}
		}
	}
}

// Unseal shows that the verifier of a unit held the state that it sealed, which ends the audit; or that a member on
// trial did, which ends the trial. Also who takes no further part in the run owes it.
func (s State) Unseal(env Env, from string, id UnitID, o audit.Opening, r audit.RootFuncs) (State, []Event, error) {
	if s.over() {
		return s, nil, fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	}
	if t, ok := s.Probation(from); ok && t.Task.is(id) {
		return prove(s, env, t, o, r)
	}
	u, err := locate(s, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != Sealed || u.Question.IsZero():
		return s, nil, fmt.Errorf("%w: no seal of unit %d waits to be opened", ErrWrongPhase, id.Unit)
	case u.Verifier != from:
		return s, nil, fmt.Errorf("%w: unit %d is sealed by %s", ErrNotYours, id.Unit, u.Verifier)
	}
	subject := s.Subject(id.Round, u.Unit)
	if err := o.Check(subject, subject.End(u.Commit.Segments), u.Seal, u.Question, r); err != nil {
		return s, nil, fmt.Errorf("%w: %w", ErrBadOpening, err)
	}
	d := s.edit(env)
	l := d.of(u)
	d.unit(l, int(id.Unit)).Passed = true
	d.emit(Event{Kind: AuditPassed, Round: id.Round, Unit: id.Unit, Who: from, Other: u.Worker, Segment: u.Segment})
	if !d.again(l, int(id.Unit)) {
		d.change(u.Worker, func(m *Member) { m.Passed++ })
		d.accept(l, int(id.Unit))
	}
	after, events := d.finish()
	return after, events, nil
}

// lateOpenings excludes the verifiers that did not open a seal in time: they had not computed what they passed. Their
// other seals are worth nothing.
func (d *audits) lateOpenings() {
	for _, l := range d.all() {
		for i, u := range l.Units {
			if u.Status == Sealed && !u.Question.IsZero() && d.env.Height > u.Deadline {
				if m, _ := d.Member(u.Verifier); !sealUnopenable(m) {
					d.broken(l, i, WhySealUnopened)
					d.audit(l, i)
				}
			}
		}
	}
}

// sealUnopenable reports whether a verifier was found not to look at what it passes.
func sealUnopenable(m Member) bool {
	return m.Why == WhySealUnopened || m.Why == WhyPlantPassed || m.Why == WhyDiffers
}

// broken says that the audit of a unit was none. Its verifier takes no further part.
func (d *audits) broken(l *RoundState, i int, why string) {
	u := d.unit(l, i)
	u.Passed = false
	if u.Status == Sealed {
		d.unanswered(l, i, u.Verifier, why)
	}
	d.expel(l, u, u.Verifier, why)
}

// expel says that a verifier passed a unit without a look. It takes no further part.
func (d *audits) expel(l *RoundState, u *Unit, verifier, why string) {
	d.emit(Event{Kind: AuditBroken, Round: l.Round, Unit: u.Index, Who: verifier, Other: u.Worker, Why: why})
	d.leave(verifier, why)
	d.change(verifier, func(m *Member) { m.Why = why })
}
