package run

import (
	"fmt"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Unseal shows that the verifier of a unit held the state that it sealed, which ends the audit; or that a member on
// probation did, which ends the probation. A verifier that left the run still owes it.
func (s State) Unseal(env transition.Env, from string, id work.UnitID, o audit.Opening,
	r audit.RootFuncs) (State, []event.Event, error) {
	if s.Over() {
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrHalted, s.Terms.Job)
	}
	if t, ok := s.Probation(from); ok && t.Task.Is(id) {
		return prove(s, env, t, o, r)
	}
	u, err := admission.Locate(s.Progress, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != work.Sealed || u.Question.IsZero():
		return s, nil, fmt.Errorf("%w: no seal of unit %d waits to be opened", refusal.ErrWrongPhase, id.Unit)
	case u.Verifier != from:
		return s, nil, fmt.Errorf("%w: unit %d is sealed by %s", refusal.ErrNotYours, id.Unit, u.Verifier)
	}
	subject := s.Subject(id.Round, u.Unit)
	if err := o.Check(subject, subject.End(u.Commit.Segments), u.Seal, u.Question, r); err != nil {
		return s, nil, fmt.Errorf("%w: %w", refusal.ErrBadOpening, err)
	}
	d := s.edit(env)
	l := d.EditRoundOf(u)
	d.Unit(l, int(id.Unit)).Passed = true
	d.Emit(event.Event{Kind: event.AuditPassed, Round: id.Round, Unit: id.Unit, Who: from, Other: u.Worker,
		Segment: u.Segment})
	if !d.Again(l, int(id.Unit)) {
		d.Change(u.Worker, func(m *crew.Member) { m.Passed++ })
		d.Accept(l, int(id.Unit))
	}
	after, events := d.finish()
	return after, events, nil
}
