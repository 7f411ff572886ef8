package run

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/assignment"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Feed names the data of the current round of a run that its consumer leads: the root over their tensors, and the CID
// of their bytes. The round begins with them, and they do not change. A round that was rolled back keeps them if a
// verdict was about its own unit, and waits for others if it was about an earlier one.
func (s State) Feed(env transition.Env, round uint32, root canon.Digest, cid string) (State, []event.Event, error) {
	switch {
	case s.Over():
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrHalted, s.Phase)
	case s.Terms.Led == 0:
		return s, nil, fmt.Errorf("%w: the data of %s follow from its specification", refusal.ErrWrongPhase, s.Terms.Job)
	case root.IsZero() || !terms.ValidCID(cid):
		return s, nil, fmt.Errorf("%w: no root of the data, or a CID of %d bytes, wanted 1 to %d", refusal.ErrBadData,
			len(cid), terms.MaxCID)
	case round != s.Round:
		return s, nil, fmt.Errorf("%w: round %d, the run is in round %d", refusal.ErrStale, round, s.Round)
	case len(s.From) > 0:
		return s, nil, fmt.Errorf("%w: round %d has data", refusal.ErrDuplicate, round)
	case s.Phase != progress.Assign:
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrWrongPhase, s.Phase)
	}
	d := s.edit(env)
	d.From = []work.HandedState{{Root: root, CID: cid, Led: true}}
	after, events := d.finish()
	return after, events, nil
}

// lacks is the report of a member of a run that its consumer leads that it cannot have the data of the current round,
// or that they are not what the consumer named. When members with more than half of the stake have said so, the round
// waits for other data. No member is blamed.
func lacks(s State, env transition.Env, from string, id work.UnitID) (State, []event.Event, error) {
	d := s.edit(env)
	u := d.Unit(d.EditRound(id.Round), int(id.Unit))
	u.Missing = append(u.Missing[:len(u.Missing):len(u.Missing)], from)
	if d.MostSay("", u.Missing) {
		assignment.Starve(d.Assignment)
	}
	after, events := d.finish()
	return after, events, nil
}
