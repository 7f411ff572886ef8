package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/schedule"
)

// draw decides once, in a block after the last commitment of a round, which of its units are audited. The beacon of
// that block was unknown to every worker when it committed.
func (d *audits) draw() {
	if d.env.Beacon.IsZero() || d.unwatched() && d.env.Draw == nil {
		return
	}
	for _, l := range d.all() {
		if d.frozen(l) {
			continue
		}
		if l.Drawn {
			d.redraw(l)
			continue
		}
		if l.Closed == 0 || d.env.Height <= l.Closed {
			continue
		}
		l.Drawn = true
		for i, u := range l.Units {
			if u.Status != Committed || d.halted() {
				continue
			}
			m, _ := d.Member(u.Worker)
			rate := audit.Rate(d.Terms.Floor(), m.Passed)
			switch {
			case u.Looked && !u.Exact && !u.Commit.Diverged() && !d.spares(u.Index):
				d.accept(l, i)
			case u.Audited || u.Commit.Diverged() && d.lookers() > 0:
				d.audit(l, i)
			case audit.Draw(d.env.Beacon, d.Terms.Job, l.Round, u.Index, u.Attempt, rate):
				d.unit(l, i).Segment = d.segment(l.Round, *u)
				d.audit(l, i)
			default:
				d.accept(l, i)
			}
		}
	}
}

// unwatched reports whether audits wait for a verifier: nobody is left who could do them. The run goes on as far as its
// window reaches, and ends when nobody has joined for as many deadlines as the last member of a role is waited for.
func (d *audits) unwatched() bool {
	waits := func(l *RoundState) bool {
		return !d.frozen(l) && slices.ContainsFunc(l.Units,
			func(u *Unit) bool { return u.Status == Committed && l.Closed > 0 })
	}
	switch {
	case len(d.Active(Verifier)) > 0 || d.Terms.AuditPPM == 0 || !slices.ContainsFunc(d.all(), waits):
		d.Unwatched = 0
		return false
	case d.Unwatched == 0:
		d.Unwatched = d.env.Height
	case d.env.Height > d.Unwatched+lastPatience*d.TrainDeadline():
		d.halt(WhyNoVerifiers)
	}
	return true
}

// redraw draws verifiers for the audits that waited for one.
func (d *audits) redraw(l *RoundState) {
	for i, u := range l.Units {
		if u.Status == Committed && u.Audited {
			d.audit(l, i)
		}
	}
}

// segment draws to the end of which segment an audit executes a unit. Of the last one it looks at the update too.
func (d *audits) segment(round uint32, u Unit) uint32 {
	if n := d.Terms.SegmentsOf(u.Index); d.Terms.PartialAudits && !d.Tolerant(u) {
		return uint32(d.pick("segment", round, u, int(n))+1) % n
	}
	return 0
}

// audit draws a verifier for a unit. Without any the audit waits.
func (d *audits) audit(l *RoundState, i int) {
	u := d.unit(l, i)
	switch {
	case d.halted():
		return
	case d.convicted(u.Worker) && d.isVoid(l): // it is forfeited, nobody looks at it
		u.Status = Accepted
		return
	case d.frozen(l):
		u.Status, u.Verifier, u.Audited, u.Passed = Committed, "", true, false
		return
	}
	if d.env.Beacon.IsZero() { // a block without one draws nothing: the next with one does
		u.Status, u.Verifier, u.Audited = Committed, "", true
		return
	}
	if d.Tolerant(*u) && d.panels.look(l, i, 1) {
		return
	}
	m, ok := Member{}, false
	if !d.Tolerant(*u) {
		if m, ok = d.drawn(l, *u); !ok {
			m.ID, ok = d.seated(l, *u)
		}
	}
	switch {
	case ok:
		d.appoint(l, i, m)
	case d.Terms.AuditPPM == 0:
		d.accept(l, i)
	case u.FirstAttempt != "": // nobody else is there for the second look
		u.Passed = true
		d.accept(l, i)
	default:
		u.Status, u.Verifier, u.Audited = Committed, "", true
	}
}

// unanswered ends an audit or a challenge without an answer. A seal that counts for nothing is none.
func (d *audits) unanswered(l *RoundState, i int, who, why string) {
	u := l.Units[i]
	if u.Status == Sealed {
		d.unit(l, i).Status = Auditing
	}
	d.emit(Event{Kind: AuditMissed, Round: l.Round, Unit: u.Index, Who: who, Other: u.Worker, Why: why})
}

// Pass is a verifier's answer that a commitment is right, with the seal of the state that it reached. A beacon that is
// drawn later says where the seal must be opened.
func (s State) Pass(env Env, from string, id UnitID, seal canon.Digest) (State, []Event, error) {
	u, err := answers(s, from, id)
	switch {
	case err != nil:
		return s, nil, err
	case u.Status != Auditing || s.Tolerant(u.Unit):
		return s, nil, fmt.Errorf("%w: no audit of unit %d that a seal answers is open", ErrWrongPhase, id.Unit)
	case u.Verifier != from:
		return s, nil, fmt.Errorf("%w: unit %d is audited by %s", ErrNotYours, id.Unit, u.Verifier)
	case seal.IsZero():
		return s, nil, fmt.Errorf("%w: no seal", ErrBadOpening)
	}
	d := s.edit(env)
	d.answered(u.Unit)
	v := d.unit(d.of(u), int(id.Unit))
	v.Status, v.Seal, v.Question, v.AssignedAt = Sealed, seal, canon.Digest{}, env.Height
	d.emit(Event{Kind: AuditSealed, Round: id.Round, Unit: id.Unit, Who: from, Other: u.Worker})
	after, events := d.finish()
	return after, events, nil
}

// answered takes note that a verifier has answered an audit. It turns to its next one.
func (d *audits) answered(u Unit) { d.responded(u.Verifier, u, u.AssignedAt) }

// responded takes note that a verifier has answered an audit of a unit that it had since a height.
func (d *audits) responded(verifier string, u Unit, since int64) {
	blocks := d.waited(since)
	d.AuditBlocks = schedule.Remember(d.AuditBlocks, blocks)
	d.change(verifier, func(m *Member) {
		m.Missed = 0
		m.measure(d.Terms.Executed(u.Index, u.Segment, blocks<<8), false)
	})
	for _, l := range d.all() {
		for i, v := range l.Units {
			switch {
			case v.OwesReport(verifier):
				v = d.unit(l, i)
				v.Looks = slices.Clone(v.Looks)
				x := &v.Looks[v.look(verifier)]
				x.Since, x.Deadline = d.env.Height, d.due(verifier, d.AuditDeadline())
			case v.Status == Auditing && v.Verifier == verifier:
				v = d.unit(l, i)
				v.AssignedAt, v.Deadline = d.env.Height, d.due(verifier, d.AuditDeadline())
			}
		}
	}
}

// lateAudits draws other verifiers for audits past their deadline. A verifier of several has missed one deadline.
func (d *audits) lateAudits() {
	type place struct {
		lap  *RoundState
		unit int
	}
	var late []place
	var verifiers []string
	for _, l := range d.all() {
		for i, u := range l.Units {
			if u.Status != Auditing || d.env.Height <= u.Deadline || d.Tolerant(*u) {
				continue
			}
			late = append(late, place{l, i})
			d.unanswered(l, i, u.Verifier, WhyMissedDeadline)
			if !slices.Contains(verifiers, u.Verifier) {
				verifiers = append(verifiers, u.Verifier)
			}
		}
	}
	for _, id := range verifiers {
		d.recordMiss(id, WhyMissedAudits)
	}
	for _, p := range late {
		d.audit(p.lap, p.unit)
	}
}

// accept says that nothing is open about a unit.
func (d *audits) accept(l *RoundState, i int) {
	u := d.unit(l, i)
	u.Status = Accepted
	d.emit(Event{Kind: UnitAccepted, Round: l.Round, Unit: u.Index, Who: u.Worker})
	if l == &d.RoundState {
		d.units.withheld(i)
	}
}
