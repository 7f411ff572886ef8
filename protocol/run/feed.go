package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/assignment"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
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
	case s.Starved >= assignment.MaxStarved:
		return s, nil, fmt.Errorf("%w: %d times most members could not have the data of round %d: the run ends",
			refusal.ErrWrongPhase, s.Starved, round)
	}
	d := s.edit(env)
	d.From = []work.HandedState{{Root: root, CID: cid, Led: true}}
	after, events := d.finish()
	return after, events, nil
}

// Unavailable is the report of a member that it cannot have the update of a unit, or the data of its round.
func Unavailable(s State, env transition.Env, from string, id work.UnitID, slice uint32,
	data bool) (State, []event.Event, error) {
	if data {
		return LacksData(s, env, from, id)
	}
	return s.Missing(env, from, id, slice)
}

// LacksData is the report of a member of a run that its consumer leads that it cannot have the data of the current
// round, or that they are not what the consumer named. When members with more than half of the stake have said so, the
// round waits for other data, and nothing of it is paid. No member is blamed. A unit that is committed is its worker's
// word that the worker has the data: the others decide. The first report about a unit that is audited gives them the
// time of another audit. See passOn for a verifier that has no part in that.
func LacksData(s State, env transition.Env, from string, id work.UnitID) (State, []event.Event, error) {
	u, err := admission.Answer(s.Progress, from, id)
	audits := u.Status == work.Auditing && u.Verifier == from
	member := admission.Sender(s.Progress, from)
	switch {
	case err != nil:
		return s, nil, err
	case s.Terms.Led == 0:
		return s, nil, fmt.Errorf("%w: the data of %s follow from its specification", refusal.ErrWrongPhase, s.Terms.Job)
	case audits && (member != nil || !s.RoundState.Has(id)) && excuses(u.NoData, from) < mostExcuses:
		return passOn(s, env, u)
	case slices.Contains(u.NoData, from):
		return s, nil, fmt.Errorf("%w: the data of round %d are reported", refusal.ErrDuplicate, id.Round)
	case member != nil:
		return s, nil, member
	case !s.RoundState.Has(id):
		return s, nil, fmt.Errorf("%w: round %d is attested by members that have its data", refusal.ErrStale, id.Round)
	case u.Status == work.Disputed:
		return s, nil, fmt.Errorf("%w: unit %d is disputed by a member that has its data", refusal.ErrWrongPhase, id.Unit)
	case u.Status != work.Assigned && u.Worker == from:
		return s, nil, fmt.Errorf("%w: the sender has committed unit %d", refusal.ErrNotYours, id.Unit)
	}
	d := s.edit(env)
	v := d.Unit(&d.RoundState, int(id.Unit))
	if v.Status == work.Auditing && len(v.NoData) == 0 {
		v.Deadline = max(v.Deadline, d.Due(v.Verifier, d.AuditDeadline()))
	}
	v.NoData = append(slices.Clip(v.NoData), from)
	d.Change(from, func(m *crew.Member) { m.Silent = 0 })
	holder := "" // a member that is known to have the data
	if v.Status != work.Assigned {
		holder = v.Worker
	}
	if d.MostSay(holder, v.NoData) {
		d.starve()
	}
	after, events := d.finish()
	return after, events, nil
}

// passOn gives the audit of a unit to another verifier, as its own cannot have the data of the round: a guest, which
// has no vote about them, or a member after the round is attested. It has missed no audit. A guest is not drawn for the
// unit again. When as many guests as mostOutside cannot have the data of a round that is attested, those that attested
// it withhold them, as each of them would serve them to a guest: the run ends, and its open rounds are not paid. The
// data of a round that was rolled back are no more a matter of the run.
func passOn(s State, env transition.Env, u work.AuditTarget) (State, []event.Event, error) {
	d := s.edit(env)
	l := d.EditRoundOf(u)
	v := d.Unit(l, int(u.Index))
	v.NoData = append(slices.Clip(v.NoData), u.Verifier)
	d.Unanswered(l, int(u.Index), u.Verifier, reason.NoData)
	guests := 0
	for _, id := range v.NoData {
		if d.Guest(id) {
			guests++
		}
	}
	if guests >= mostOutside && l.Round < d.Round && !d.IsVoid(l) {
		d.Halt(reason.NoData)
	} else {
		d.Audit(l, int(u.Index))
	}
	after, events := d.finish()
	return after, events, nil
}

// mostOutside is how many verifiers of the network, of as many owners, end a run whose data they cannot have. Each is
// drawn for the unit by its stake, after the one before it has answered.
const mostOutside = 5

// mostExcuses is how often a verifier may say of one unit that it has no data: for the vote, and for an audit after it.
const mostExcuses = 2

// excuses is how often a member has said so.
func excuses(all []string, id string) (n int) {
	for _, said := range all {
		if said == id {
			n++
		}
	}
	return n
}

// starve takes the unit of the current round from its worker: most members cannot have the data of the round. No member
// could audit it, so no audit of it is missed either.
func (d *rules) starve() {
	for i := range d.Units {
		d.Audits.CancelDisputes(&d.RoundState, i, reason.NoData)
	}
	assignment.Starve(d.Assignment)
}
