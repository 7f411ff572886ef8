package run

import (
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

import "fmt"

// Confess says that a worker finds its own commitment wrong, as after a fault of its machine. It loses the unit, which
// is not paid and is done again, and no stake. It must say so before anybody can know which units are audited: in a
// round whose last commitment is not there, or came in this block. The proposer of the next one knows the beacon that
// draws them, and who could confess then would fake every unit and confess what is drawn. It counts like a missed
// deadline, so that nobody holds a round up for ever.
func (s State) Confess(env transition.Env, from string, id work.UnitID) (State, []event.Event, error) {
	u, err := admission.Unit(s.Progress, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Worker != from:
		return s, nil, fmt.Errorf("%w: unit %d is %s's", refusal.ErrNotYours, id.Unit, u.Worker)
	case id.Round != s.Round || u.Status != work.Committed || s.Drawn || s.Closed > 0 && env.Height > s.Closed:
		return s, nil, fmt.Errorf("%w: unit %d is not committed, or its audit may be known", refusal.ErrWrongPhase, id.Unit)
	}
	d := s.edit(env)
	d.RecordMiss(from, reason.Confessed)
	d.Reassign(int(id.Unit), reason.Confessed)
	after, events := d.finish()
	return after, events, nil
}
