package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// MaxChallengers is how many disputes about one attempt at a unit may be open at a time.
const MaxChallengers = 16

// Challenge claims that a commitment is wrong. A verifier sends it as the answer to its audit; any other account may
// send it until the round is final. It opens a dispute, which Verdict ends; disputes about one unit run one at a time,
// in the order of the challenges. The challenger's stake is its bond. A challenger that is no member becomes a guest of
// the run; the caller has checked its stake.
func (s State) Challenge(env transition.Env, from string, id work.UnitID) (State, []event.Event, error) {
	if s.Over() {
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrHalted, s.Terms.Job)
	}
	u, err := admission.Locate(s.Progress, id)
	if err == nil {
		err = challenger(s, from, u)
	}
	if err != nil {
		return s, nil, err
	}
	switch {
	case slices.Contains(u.Challengers, from):
		return s, nil, fmt.Errorf("%w: %s has challenged unit %d", refusal.ErrDuplicate, from, id.Unit)
	case s.Terms.Freezes() && slices.ContainsFunc(s.RolledBack, func(l work.RoundState) bool { return l.Has(id) }):
		return s, nil, fmt.Errorf("%w: round %d was rolled back", refusal.ErrStale, id.Round)
	case u.Status == work.Assigned || u.Status == work.Committed:
		return s, nil, fmt.Errorf("%w: the audits of round %d are not drawn", refusal.ErrWrongPhase, id.Round)
	case s.Forfeited(u):
		return s, nil, fmt.Errorf("%w: round %d was rolled back, and %s is convicted", refusal.ErrStale, id.Round, u.Worker)
	case s.Tolerant(u.Unit):
		return s, nil, fmt.Errorf("%w: unit %d is not exact, nothing about it can be shown", refusal.ErrWrongPhase, id.Unit)
	case u.Status == work.Sealed:
		return s, nil, fmt.Errorf("%w: %s has to open its seal of unit %d first", refusal.ErrWrongPhase, u.Verifier, id.Unit)
	case len(u.Challengers) >= MaxChallengers:
		return s, nil, fmt.Errorf("%w: %d disputes about unit %d are open", refusal.ErrWrongPhase, len(u.Challengers),
			id.Unit)
	}
	d := s.edit(env)
	l := d.EditRoundOf(u)
	if m, known := d.Member(from); !known || m.MayBeGuest() {
		d.Welcome(crew.Member{ID: from})
	}
	kind := event.UnitChallenged
	switch {
	case u.Status == work.Auditing && u.Verifier == from:
		kind = event.AuditFailed
		d.Answered(u.Unit)
	case u.Status == work.Auditing:
		d.Unanswered(l, int(id.Unit), u.Verifier, reason.Challenged)
	}
	d.Emit(event.Event{Kind: kind, Round: id.Round, Unit: id.Unit, Who: from, Other: u.Worker})
	v := d.Unit(l, int(id.Unit))
	v.Status, v.Challengers = work.Disputed, append(slices.Clip(u.Challengers), from)
	after, events := d.finish()
	return after, events, nil
}

// Stands returns an error if the commitment with this digest is not the current one of an attempt at a unit. The fault
// that a challenger found may have been planted, and revealed before its challenge is in a block. The current
// commitment is then right, and a challenge of it would cost an honest challenger its stake.
func (s State) Stands(id work.UnitID, commitment canon.Digest) error {
	d, err := admission.Locate(s.Progress, id)
	if err == nil && d.Commit.Digest() != commitment {
		err = fmt.Errorf("%w: the commitment to unit %d of round %d is another by now", refusal.ErrStale, id.Unit, id.Round)
	}
	return err
}

// Verdict ends the running dispute about a unit. The loser takes no further part. If the worker lost, another worker
// does the unit again from the checkpoint that its round started from, and every other dispute about it is moot. If the
// challenger lost, the next dispute about the unit begins, or its audit is drawn again, or the unit counts.
// silent means that the loser made no move by its deadline, so nothing was proven.
func (s State) Verdict(env transition.Env, id work.UnitID, workerLies, silent bool,
	loser string) (State, []event.Event, error) {
	if s.Over() {
		return s, nil, fmt.Errorf("%w: %s", refusal.ErrHalted, s.Terms.Job)
	}
	u, err := admission.Locate(s.Progress, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != work.Disputed:
		return s, nil, fmt.Errorf("%w: unit %d is not disputed", refusal.ErrWrongPhase, id.Unit)
	}
	party := u.Challengers[0]
	if workerLies {
		party = u.Worker
	}
	if loser != party {
		return s, nil, fmt.Errorf("%w: %s cannot lose this dispute, %s does", refusal.ErrNotYours, loser, party)
	}
	d := s.edit(env)
	if workerLies {
		d.Convict(d.EditRoundOf(u), int(id.Unit), silent)
	} else {
		d.Acquit(d.EditRoundOf(u), int(id.Unit))
	}
	after, events := d.finish()
	return after, events, nil
}
