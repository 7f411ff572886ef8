package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// looked finds the unit of a tolerant audit, and the index of the verifier's report in it.
func looked(s State, from string, id work.UnitID) (work.Unit, int, error) {
	if s.Over() {
		return work.Unit{}, 0, fmt.Errorf("%w: %s", refusal.ErrHalted, s.Terms.Job)
	}
	u, err := admission.Find(s.Progress, id)
	if err != nil {
		return u, 0, err
	}
	k := u.ReportOf(from)
	switch {
	case !s.Tolerant(u):
		return u, k, fmt.Errorf("%w: unit %d is settled by its state roots", refusal.ErrWrongPhase, id.Unit)
	case k < 0:
		return u, k, fmt.Errorf("%w: unit %d is not audited by %s", refusal.ErrNotYours, id.Unit, from)
	}
	return u, k, nil
}

// Report binds a verifier to its finding about a tolerant unit: seal is the seal of an audit.Finding. The report
// itself says only whether the update is outside the tolerance, which decides how many verifiers audit the unit.
func (s State) Report(env transition.Env, from string, id work.UnitID, seal canon.Digest,
	outside bool) (State, []event.Event, error) {
	u, k, err := looked(s, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != work.Auditing:
		return s, nil, fmt.Errorf("%w: no audit of unit %d is open", refusal.ErrWrongPhase, id.Unit)
	case !u.Looks[k].Seal.IsZero():
		return s, nil, fmt.Errorf("%w: %s has reported unit %d", refusal.ErrDuplicate, from, id.Unit)
	case seal.IsZero():
		return s, nil, fmt.Errorf("%w: no seal", refusal.ErrBadOpening)
	}
	d := s.edit(env)
	d.Responded(from, u, u.Looks[k].Since)
	v := d.Unit(d.EditRound(id.Round), int(id.Unit))
	v.Looks = slices.Clone(v.Looks)
	v.Looks[k].Seal, v.Looks[k].Outside, v.Looks[k].Since = seal, outside, env.Height
	d.Emit(event.Event{Kind: event.AuditSealed, Round: id.Round, Unit: id.Unit, Who: from, Other: u.Worker})
	after, events := d.finish()
	return after, events, nil
}

// ShowReport shows the finding that a report binds its verifier to. The panel decides once all its findings are shown.
// A verifier that left the run still owes its finding.
func (s State) ShowReport(env transition.Env, from string, id work.UnitID, f audit.Finding,
	salt canon.Digest) (State, []event.Event, error) {
	u, k, err := looked(s, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != work.Sealed:
		return s, nil, fmt.Errorf("%w: not all who look at unit %d are bound", refusal.ErrWrongPhase, id.Unit)
	case u.Looks[k].Shown:
		return s, nil, fmt.Errorf("%w: %s has shown its report of unit %d", refusal.ErrDuplicate, from, id.Unit)
	case f.Seal(id.Subject(from, s.Terms.Job, 0), salt) != u.Looks[k].Seal:
		return s, nil, fmt.Errorf("%w: this is not what was sealed of unit %d", refusal.ErrBadOpening, id.Unit)
	case s.Terms.Tolerance.Holds(f.DistancePPM, f.CosinePPM) == u.Looks[k].Outside:
		return s, nil, fmt.Errorf("%w: this is not what was said of unit %d", refusal.ErrBadOpening, id.Unit)
	}
	d := s.edit(env)
	l := d.EditRound(id.Round)
	v := d.Unit(l, int(id.Unit))
	v.Looks = slices.Clone(v.Looks)
	v.Looks[k].Shown, v.Looks[k].Finding = true, f
	d.Decide(l, int(id.Unit))
	after, events := d.finish()
	return after, events, nil
}
