package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Join adds members that the market has matched to a run in progress; each begins its probation. Only ID, Role, Price,
// Passed, Stake and Owner of the members are used, and Passed only if the account was no member before.
func (s State) Join(env transition.Env, members []crew.Member) (State, []event.Event, error) {
	d := s.edit(env)
	for _, m := range members {
		if !seatable(s.Terms, m) || !d.MayJoin(m.ID, m.Role) {
			return s, nil, fmt.Errorf("%w: %q cannot join in role %d", refusal.ErrTerms, m.ID, m.Role)
		}
		d.Join(m)
	}
	after, events := d.finish()
	return after, events, nil
}

// Return reports that a member that is out over missed deadlines is back. It joins again when a seat is free. Each
// time it must have waited twice as long as the time before.
func (s State) Return(env transition.Env, from string) (State, []event.Event, error) {
	m, ok := s.Member(from)
	switch {
	case s.Over() || !ok:
		return s, nil, admission.Sender(s.Progress, from)
	case m.Participating() || m.Why == reason.Returning:
		return s, nil, fmt.Errorf("%w: %s takes part", refusal.ErrDuplicate, from)
	case !m.Absent():
		return s, nil, fmt.Errorf("%w: %s is out for good (%s)", refusal.ErrInactive, from, m.Why)
	case !s.MayReturn(from, env.Height):
		return s, nil, fmt.Errorf("%w: %s may return from height %d", refusal.ErrWrongPhase, from, m.Since+s.RestBlocks(m))
	}
	d := s.edit(env)
	d.Change(from, func(m *crew.Member) { m.Why = reason.Returning })
	return State{d.Progress}, nil, nil
}

// SubmitProbation is the answer of a member on probation to its task: the seal of the state that it reached, or none
// if that state is not the committed one. Then it gets another task, since the commitment may be wrong.
func (s State) SubmitProbation(env transition.Env, from string, id work.UnitID,
	seal canon.Digest) (State, []event.Event, error) {
	t, ok := s.Probation(from)
	switch {
	case s.Over():
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrHalted, s.Terms.Job)
	case !ok:
		return s, nil, fmt.Errorf("%w: %s is not in probation", refusal.ErrNotYours, from)
	case !t.Task.Is(id):
		return s, nil, fmt.Errorf("%w: %s has another probation task", refusal.ErrStale, from)
	case !t.Seal.IsZero():
		return s, nil, fmt.Errorf("%w: %s has answered", refusal.ErrDuplicate, from)
	}
	d := s.edit(env)
	t.Seal, t.Asked, t.Deadline = seal, env.Height, 0
	if seal.IsZero() {
		t.Task = progress.ProbationTask{}
	}
	d.StoreProbation(t)
	after, events := d.finish()
	return after, events, nil
}

// prove ends a probation: the member held the state that others committed to.
func prove(s State, env transition.Env, t progress.Probation, o audit.Opening,
	r audit.RootFuncs) (State, []event.Event, error) {
	if t.Question.IsZero() {
		return s, nil, fmt.Errorf("%w: no seal of %s waits to be opened", refusal.ErrWrongPhase, t.Member)
	}
	subject := s.ProbationSubject(t)
	if err := o.Check(subject, subject.End(t.Task.Commit.Segments), t.Seal, t.Question, r); err != nil {
		return s, nil, fmt.Errorf("%w: %w", refusal.ErrBadOpening, err)
	}
	d := s.edit(env)
	d.Probations = slices.DeleteFunc(d.Probations, func(u progress.Probation) bool { return u.Member == t.Member })
	d.Admit(t.Member)
	after, events := d.finish()
	return after, events, nil
}
