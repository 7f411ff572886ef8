package run

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
)

// Leave ends the part of a member in good standing. Units that it has not finished are reassigned at once; its
// committed work stays and is paid like any other. While that work may be audited or disputed it owes the answers: it
// makes its moves in disputes, opens its seals and reveals its planted faults (see Liable). The last worker, and the
// last verifier of a run with audits, cannot leave.
func (s State) Leave(env transition.Env, from string) (State, []event.Event, error) {
	m, _ := s.Member(from)
	if err := admission.Sender(s.Progress, from); err != nil && (s.Over() || !m.Participating()) {
		return s, nil, err
	}
	if m.Active && s.IsLast(m) {
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrLast, from)
	}
	d := s.edit(env)
	d.Leave(from, reason.Left)
	if d.Phase == progress.Attest { // what is left may be a quorum
		d.Tally()
	}
	after, events := d.finish()
	return after, events, nil
}
