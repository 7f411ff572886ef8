package run

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Decline removes a member that cannot open the job: its blobs are unavailable, differ from the order, or do not fit
// into its machine. The member has done nothing in the run, loses nothing, and does not return. While no unit is
// committed, the last worker and the last verifier may decline as well: nothing shows yet that the job can be opened.
func (s State) Decline(env transition.Env, from string) (State, []event.Event, error) {
	m, known := s.Member(from)
	switch {
	case s.Over() || !known:
		return s, nil, admission.Sender(s.Progress, from)
	case m.Active && s.Opened() && s.IsLast(m):
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrLast, from)
	case !s.MayDecline(from):
		return s, nil, fmt.Errorf("%w: %s has worked in the run, or is out of it", refusal.ErrWrongPhase, from)
	}
	d := s.edit(env)
	d.Leave(from, reason.Unopened)
	d.Change(from, func(m *crew.Member) { m.Why = reason.Unopened }) // also of a member that is out over missed deadlines
	if len(crew.Learners(d.Crew)) == 0 {
		d.Unopened()
	}
	if d.Phase == progress.Attest { // what is left may be a quorum
		d.Tally()
	}
	after, events := d.finish()
	return after, events, nil
}
