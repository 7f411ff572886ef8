package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Suspect is a member's report that the update of a unit is an outlier among those of its round. Once members with
// more than half of the weight have reported a unit, its worker and the other accounts of its owner left out, the unit
// is audited for certain, if the run has audits. The report itself slashes no member and withholds no pay. In a
// tolerant run the unit is withheld instead, and must be reported before its round is attested.
func (s State) Suspect(env transition.Env, from string, id work.UnitID) (State, []event.Event, error) {
	u, err := admission.Unit(s.Progress, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status == work.Assigned:
		return s, nil, fmt.Errorf("%w: unit %d is not committed", refusal.ErrWrongPhase, id.Unit)
	case u.Worker == from:
		return s, nil, fmt.Errorf("%w: unit %d is the sender's own", refusal.ErrNotYours, id.Unit)
	case s.Tolerant(u) && (id.Round != s.Round || s.Phase != progress.Attest):
		return s, nil, fmt.Errorf("%w: updates are withheld between the last commitment and the attestation",
			refusal.ErrWrongPhase)
	case slices.Contains(u.OutlierFlags, from):
		return s, nil, fmt.Errorf("%w: unit %d is reported", refusal.ErrDuplicate, id.Unit)
	}
	d := s.edit(env)
	l := d.EditRound(id.Round)
	v := d.Unit(l, int(id.Unit))
	v.OutlierFlags = append(slices.Clip(u.OutlierFlags), from)
	switch most := d.MostSay(u.Worker, v.OutlierFlags); {
	case most && s.Tolerant(u):
		d.Withhold(int(id.Unit), reason.Odd, nil)
	case most && !u.Audited && s.Terms.AuditPPM > 0 && d.Lookers() > 0:
		v.Audited = true
		d.Emit(event.Event{Kind: event.UnitSuspected, Round: id.Round, Unit: id.Unit, Who: u.Worker})
		if u.Status == work.Accepted {
			d.Audit(l, int(id.Unit))
		}
	}
	after, events := d.finish()
	return after, events, nil
}
