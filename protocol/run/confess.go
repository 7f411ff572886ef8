package run

import (
	"fmt"

	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Confess is a worker's report that its own commitment is wrong, for example after a fault of its machine. It loses the
// unit, which is done again and not paid, and no stake. It must confess before the audited units can be known: while a
// commitment of the round is missing, or in the block of the last one. The proposer of the next block knows the beacon
// that draws them; a worker that could confess then would fake every unit and confess the drawn ones. A confession
// counts as a missed deadline, so that a worker cannot delay a round for ever.
func (s State) Confess(env transition.Env, from string, id work.UnitID) (State, []event.Event, error) {
	u, err := admission.Unit(s.Progress, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Worker != from:
		return s, nil, fmt.Errorf("%w: unit %d is %s's", refusal.ErrNotYours, id.Unit, u.Worker)
	case id.Round != s.Round || u.Status != work.Committed || s.mayBeDrawn(u, env.Height):
		return s, nil, fmt.Errorf("%w: unit %d is not committed, or its audit may be known", refusal.ErrWrongPhase, id.Unit)
	}
	d := s.edit(env)
	d.RecordMiss(from, reason.Confessed)
	d.Reassign(&d.RoundState, int(id.Unit), reason.Confessed)
	after, events := d.finish()
	return after, events, nil
}

// mayBeDrawn reports whether the audit of a unit of the current round may be known.
func (s State) mayBeDrawn(u work.Unit, height int64) bool {
	closed, drawn := s.Closed, s.Drawn
	if u.Draws {
		closed, drawn = s.Filled, s.Sampled
	}
	return drawn || closed > 0 && height > closed
}
