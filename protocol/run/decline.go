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

// Decline ends the part of a member that cannot open the job: its blobs cannot be had, they are not what was ordered,
// or they do not fit into its machine. It has done nothing in the run, loses nothing, and does not come back to it. As
// long as nobody has committed a unit the last worker and the last verifier may go, too: there is nothing yet that
// shows that anybody can open the job.
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
	d.Change(from, func(m *crew.Member) { m.Why = reason.Unopened }) // also who is out over deadlines that it missed
	if len(d.Active(crew.Worker)) == 0 {
		d.Unopened()
	}
	if d.Phase == progress.Attest { // what is left may be a quorum
		d.Tally()
	}
	after, events := d.finish()
	return after, events, nil
}
