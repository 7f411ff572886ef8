package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// RevealPlantedFault shows that a worker planted a fault in a commitment, once its opening challenge is answered: the
// hidden roots replace the planted ones. A verifier that had passed the unit is slashed, a challenger loses nothing,
// and an audit of the unit continues with the right roots. The update was right all along, so nothing that was built on
// it changes. A member that has left the run may show it too.
func (s State) RevealPlantedFault(env transition.Env, from string, id work.UnitID, nonce canon.Digest,
	segments []canon.Digest) (State, []event.Event, error) {
	if s.Over() {
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrHalted, s.Terms.Job)
	}
	u, err := admission.Locate(s.Progress, id)
	m, _ := s.Member(from)
	switch {
	case err != nil:
		return s, nil, err
	case u.Worker != from:
		return s, nil, fmt.Errorf("%w: unit %d is %s's", refusal.ErrNotYours, id.Unit, u.Worker)
	case u.Status != work.Sealed && u.Status != work.Accepted && u.Status != work.Disputed:
		return s, nil, fmt.Errorf("%w: unit %d is not answered yet", refusal.ErrWrongPhase, id.Unit)
	case s.Tolerant(u.Unit):
		return s, nil, fmt.Errorf("%w: the state roots of unit %d are not compared", refusal.ErrBadPlant, id.Unit)
	case len(segments) != len(u.Commit.Segments) || audit.Hide(nonce, segments) != u.Commit.HiddenRoots:
		return s, nil, fmt.Errorf("%w: this was not hidden in the commitment", refusal.ErrBadPlant)
	case slices.Equal(segments, u.Commit.Segments) || !slices.Equal(audit.Plant(nonce, segments), u.Commit.Segments):
		return s, nil, fmt.Errorf("%w: what was committed is not what is planted in this", refusal.ErrBadPlant)
	case m.Planted >= audit.MayPlant(m.Commits):
		return s, nil, fmt.Errorf("%w: %d planted in %d commitments", refusal.ErrBadPlant, m.Planted, m.Commits)
	}
	d := s.edit(env)
	d.Change(from, func(m *crew.Member) { m.Planted++ })
	d.Emit(event.Event{Kind: event.PlantShown, Round: id.Round, Unit: id.Unit, Who: from})
	d.ShowPlant(d.EditRoundOf(u), int(id.Unit), segments)
	after, events := d.finish()
	return after, events, nil
}
