package run

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Pass is a verifier's answer that a commitment is right, with the seal of the state that it reached. A later beacon
// draws where the seal must be opened.
func (s State) Pass(env transition.Env, from string, id work.UnitID, seal canon.Digest) (State, []event.Event, error) {
	u, err := admission.Answer(s.Progress, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != work.Auditing || s.Tolerant(u.Unit):
		return s, nil, fmt.Errorf("%w: no audit of unit %d that a seal answers is open", refusal.ErrWrongPhase, id.Unit)
	case u.Verifier != from:
		return s, nil, fmt.Errorf("%w: unit %d is audited by %s", refusal.ErrNotYours, id.Unit, u.Verifier)
	case seal.IsZero():
		return s, nil, fmt.Errorf("%w: no seal", refusal.ErrBadOpening)
	}
	d := s.edit(env)
	d.Answered(u.Unit)
	v := d.Unit(d.EditRoundOf(u), int(id.Unit))
	v.Status, v.Seal, v.Question, v.AssignedAt = work.Sealed, seal, canon.Digest{}, env.Height
	d.Emit(event.Event{Kind: event.AuditSealed, Round: id.Round, Unit: id.Unit, Who: from, Other: u.Worker})
	after, events := d.finish()
	return after, events, nil
}
