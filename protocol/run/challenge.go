package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
)

// MaxChallengers is how many disputes about one attempt at a unit may be open at a time.
const MaxChallengers = 16

// Challenge says that a commitment is wrong: a verifier as its answer to an audit drawn for it, or anybody unasked, up
// to when the round is final. It opens a dispute, which a Verdict ends; disputes about one unit are played one at a
// time, in the order of the challenges. The stake of the challenger is its bond; who is no member of the run enters it
// as a guest, and the caller has made sure of its stake.
func (s State) Challenge(env Env, from string, id UnitID) (State, []Event, error) {
	if s.over() {
		return s, nil, fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	}
	u, err := locate(s, id)
	if err == nil {
		err = challenger(s, from, u)
	}
	if err != nil {
		return s, nil, err
	}
	switch {
	case slices.Contains(u.Challengers, from):
		return s, nil, fmt.Errorf("%w: %s has challenged unit %d", ErrDuplicate, from, id.Unit)
	case s.Terms.Freezes() && slices.ContainsFunc(s.RolledBack, func(l RoundState) bool { return l.has(id) }):
		return s, nil, fmt.Errorf("%w: round %d was rolled back", ErrStale, id.Round)
	case u.Status == Assigned || u.Status == Committed:
		return s, nil, fmt.Errorf("%w: the audits of round %d are not drawn", ErrWrongPhase, id.Round)
	case s.Forfeited(u):
		return s, nil, fmt.Errorf("%w: round %d was rolled back, and %s is convicted", ErrStale, id.Round, u.Worker)
	case s.Tolerant(u.Unit):
		return s, nil, fmt.Errorf("%w: unit %d is not exact, nothing about it can be shown", ErrWrongPhase, id.Unit)
	case u.Status == Sealed:
		return s, nil, fmt.Errorf("%w: %s has to open its seal of unit %d first", ErrWrongPhase, u.Verifier, id.Unit)
	case len(u.Challengers) >= MaxChallengers:
		return s, nil, fmt.Errorf("%w: %d disputes about unit %d are open", ErrWrongPhase, len(u.Challengers), id.Unit)
	}
	d := s.edit(env)
	l := d.of(u)
	if m, known := d.Member(from); !known || m.mayBeGuest() {
		d.welcome(Member{ID: from})
	}
	kind := UnitChallenged
	switch {
	case u.Status == Auditing && u.Verifier == from:
		kind = AuditFailed
		d.answered(u.Unit)
	case u.Status == Auditing:
		d.unanswered(l, int(id.Unit), u.Verifier, WhyChallenged)
	}
	d.emit(Event{Kind: kind, Round: id.Round, Unit: id.Unit, Who: from, Other: u.Worker})
	v := d.unit(l, int(id.Unit))
	v.Status, v.Challengers = Disputed, append(slices.Clip(u.Challengers), from)
	after, events := d.finish()
	return after, events, nil
}

// Digest tells a commitment from every other, also from that which takes its place when a planted fault is shown.
func (c Commitment) Digest() canon.Digest { return canon.Hash("starling/commitment/1", c) }

// Stands reports why a challenge of the commitment with a digest is not one of what stands there for an attempt at a
// unit. The fault that a challenger found may have been planted, and shown before its challenge is in a block: what it
// would then challenge is right, and it would lose its stake for having looked.
func (s State) Stands(id UnitID, commitment canon.Digest) error {
	d, err := locate(s, id)
	if err == nil && d.Commit.Digest() != commitment {
		err = fmt.Errorf("%w: the commitment to unit %d of round %d is another by now", ErrStale, id.Unit, id.Round)
	}
	return err
}

// Verdict ends the dispute about a unit that is being played. The loser takes no further part. If it is the worker, the
// unit is done again by another, from the checkpoint that its round started from, and every other dispute about it is
// moot; if it is the challenger, the next dispute about the unit begins, or its audit is drawn again, or it counts.
// silent says that the loser made no move by its deadline, so that nothing was shown.
func (s State) Verdict(env Env, id UnitID, workerLies, silent bool, loser string) (State, []Event, error) {
	if s.over() {
		return s, nil, fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	}
	u, err := locate(s, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != Disputed:
		return s, nil, fmt.Errorf("%w: unit %d is not disputed", ErrWrongPhase, id.Unit)
	}
	party := u.Challengers[0]
	if workerLies {
		party = u.Worker
	}
	if loser != party {
		return s, nil, fmt.Errorf("%w: %s cannot lose this dispute, %s does", ErrNotYours, loser, party)
	}
	d := s.edit(env)
	if workerLies {
		d.convict(d.of(u), int(id.Unit), silent)
	} else {
		d.acquit(d.of(u), int(id.Unit))
	}
	after, events := d.finish()
	return after, events, nil
}

// convict excludes a worker. The run goes back to the round of its unit: what it did there is done again by others, and
// what it did in earlier rounds that are not final is audited.
func (d *rollbacks) convict(l *RoundState, i int, silent bool) {
	u := *l.Units[i]
	why, verdict := WhyWrongWork, WhyVerdict
	if silent {
		why, verdict = WhySilent, WhySilent
	}
	d.emit(Event{Kind: DisputeEnded, Round: l.Round, Unit: u.Index, Who: u.Challengers[0], Other: u.Worker, Why: why})
	d.unit(l, i).Challengers = u.Challengers[1:]
	d.leave(u.Worker, WhyVerdict)
	d.change(u.Worker, func(m *Member) { m.Passed, m.Why = 0, WhyVerdict })
	void := d.isVoid(l) // nothing is built on it
	d.seats.cancelProbation(func(e ProbationTask) bool { return e.Worker == u.Worker || !void && e.Round > l.Round })
	if void {
		for _, l := range d.rounds() {
			d.audits.suspect(l, u.Worker)
		}
	} else {
		if l.Round != d.Round {
			d.rollback(l.Round, u, u.Worker)
		}
		d.reassignConvicted(i, u.Worker, verdict)
		for k := range d.Open {
			d.audits.suspect(&d.Open[k], u.Worker)
		}
	}
	d.forfeit()
}

// reassignConvicted takes the units of the current round that a worker has committed to, of which a verdict found one
// wrong, from it.
func (d *rollbacks) reassignConvicted(wrong int, worker, verdict string) {
	for j, v := range d.Units {
		why := WhyConvicted
		if j == wrong {
			why = verdict
		}
		if v.Worker == worker && v.Status != Assigned {
			d.audits.cancelDisputes(&d.RoundState, j, WhyConvicted)
			d.units.reassign(j, why)
		}
	}
}

// suspect audits what a convicted worker did in a round, also what passed an audit if another verifier can look at it:
// who passed it may have been its friend. Of that all segments are looked at.
func (d *audits) suspect(l *RoundState, worker string) {
	for i, u := range l.Units {
		switch {
		case u.Worker != worker || u.Status == Assigned || u.Status == Auditing || u.Status == Sealed || d.Tolerant(*u):
		case u.Status == Disputed || u.Status == Committed: // it is audited when that is over
			u = d.unit(l, i)
			u.Audited, u.Passed, u.Segment = true, false, 0
		case !u.Audited || d.lookers() > 1 && (!u.Passed || d.spares(u.Index)):
			u = d.unit(l, i)
			u.Passed, u.Segment = false, 0
			d.audit(l, i)
		}
	}
}

// cancelDisputes ends every audit and challenge of a unit that is taken from its worker.
func (d *audits) cancelDisputes(l *RoundState, i int, why string) {
	u := d.unit(l, i)
	switch {
	case u.Status != Auditing && u.Status != Sealed:
	case d.Tolerant(*u):
		d.panels.overlook(l, i, why, func(SealedReport) bool { return true })
		u.Panel = 0
	default:
		d.unanswered(l, i, u.Verifier, why)
	}
	for _, id := range u.Challengers {
		d.unanswered(l, i, id, why)
	}
	u.Challengers = nil
}

// rollback makes an attested round the current one again. The commitments in it stay; all rounds after it are void,
// over those who are convicted.
func (d *rollbacks) rollback(round uint32, u Unit, culprits ...string) {
	at := slices.IndexFunc(d.Open, func(l RoundState) bool { return l.Round == round })
	d.emit(Event{Kind: RolledBack, Round: round, Unit: u.Index, Who: u.Worker})
	dropped := d.rounds()[at+1:]
	for _, l := range dropped {
		for _, v := range l.Units {
			d.FirstAttempt = max(d.FirstAttempt, v.last()+1)
		}
		d.markRolledBack(*l, culprits)
	}
	d.RoundState, d.Open = d.Open[at], d.Open[:at]
	d.reopen()
}

func (d *rollbacks) acquit(l *RoundState, i int) {
	u := d.unit(l, i)
	loser := u.Challengers[0]
	d.emit(Event{Kind: DisputeEnded, Round: l.Round, Unit: u.Index, Who: loser, Other: u.Worker, Why: WhyFalseChallenge})
	d.leave(loser, WhyFalseChallenge)
	d.change(loser, func(m *Member) { m.Why = WhyFalseChallenge })
	if u.Challengers = u.Challengers[1:]; len(u.Challengers) > 0 {
		return
	}
	u.Challengers = nil
	if u.Audited && !u.Passed && d.audits.lookers() > 0 {
		d.audits.audit(l, i) // the verdict has looked at one place of it only
		return
	}
	d.audits.accept(l, i)
}
