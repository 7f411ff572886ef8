package auditing

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Draw decides once, in a block after the last commitment of a round, which of its units are audited. The beacon of
// that block was unknown to every worker when it committed.
func (d *Audits) Draw() {
	if d.Env.Beacon.IsZero() || d.unwatched() && d.Env.Draw == nil {
		return
	}
	for _, l := range d.EditAll() {
		if d.Frozen(l) {
			continue
		}
		if l.Drawn || l.Sampled {
			d.redraw(l)
		}
		if !l.Sampled && l.Filled > 0 && d.Env.Height > l.Filled {
			l.Sampled = true
			d.drawOf(l, true)
		}
		if !l.Drawn && l.Closed > 0 && d.Env.Height > l.Closed {
			l.Drawn = true
			d.drawOf(l, false)
		}
	}
}

// drawOf draws the audits of the units of a round that draw, or of the others.
func (d *Audits) drawOf(l *work.RoundState, draws bool) {
	for i, u := range l.Units {
		if u.Status != work.Committed || u.Draws != draws || d.Halted() {
			continue
		}
		m, _ := d.Member(u.Worker)
		rate := audit.Rate(floor(d, m.ID), m.Passed)
		switch {
		case m.Earning: // whole, and always: nothing but its pay of this run answers for it
			d.Audit(l, i)
		case u.Looked && !u.Exact && !u.Commit.Diverged() && !d.Spares(u.Index):
			d.Accept(l, i)
		case u.Audited || u.Commit.Diverged() && d.Lookers() > 0:
			d.Audit(l, i)
		case audit.Draw(d.Env.Beacon, d.Terms.Job, l.Round, u.Index, u.Attempt, rate):
			d.Unit(l, i).Segment = d.segment(l.Round, *u)
			d.Audit(l, i)
		default:
			d.Accept(l, i)
		}
	}
}

// floor is the least audit rate of a worker in this block: lower on a machine whose attestation holds, with a
// measurement that the job lists. A worker without history is audited as any other.
func floor(d *Audits, worker string) uint32 {
	if d.Env.Attests(d.Terms.Attested, worker) {
		return d.Terms.Least()
	}
	return d.Terms.Floor()
}

// unwatched reports whether audits wait for a verifier and none is left. The run continues as far as its window
// reaches, and ends when no verifier has joined within as many deadlines as the last member of a role may miss.
func (d *Audits) unwatched() bool {
	waits := func(l *work.RoundState) bool {
		return !d.Frozen(l) && slices.ContainsFunc(l.Units,
			func(u *work.Unit) bool {
				return u.Status == work.Committed && (l.Closed > 0 && !u.Draws || l.Filled > 0 && u.Draws)
			})
	}
	switch {
	case len(d.Active(crew.Verifier)) > 0 || d.Terms.AuditPPM == 0 || !slices.ContainsFunc(d.EditAll(), waits):
		d.Unwatched = 0
		return false
	case d.Unwatched == 0:
		d.Unwatched = d.Env.Height
	case d.Env.Height > d.Unwatched+transition.MaxMissedAlone*d.TrainDeadline():
		d.Halt(reason.NoVerifiers)
	}
	return true
}

// redraw draws verifiers for the audits that wait for one.
func (d *Audits) redraw(l *work.RoundState) {
	for i, u := range l.Units {
		drawn := l.Drawn
		if u.Draws {
			drawn = l.Sampled
		}
		if drawn && u.Status == work.Committed && u.Audited {
			d.Audit(l, i)
		}
	}
}

// segment draws the segment to whose end an audit executes a unit. An audit of the last one checks the update as well.
func (d *Audits) segment(round uint32, u work.Unit) uint32 {
	if n := d.Terms.SegmentsOf(u.Index); d.Terms.PartialAudits && !d.Tolerant(u) {
		return uint32(d.Pick("segment", round, u, int(n))+1) % n
	}
	return 0
}

// Audit draws a verifier for a unit. If there is none, the audit waits.
func (d *Audits) Audit(l *work.RoundState, i int) {
	u := d.Unit(l, i)
	switch {
	case d.Halted():
		return
	case d.Convicted(u.Worker) && d.IsVoid(l): // it is forfeited and not audited
		u.Status = work.Accepted
		return
	case d.Frozen(l):
		u.Status, u.Verifier, u.Audited, u.Passed = work.Committed, "", true, false
		return
	}
	if d.Env.Beacon.IsZero() { // a block without one draws nothing: the next with one does
		u.Status, u.Verifier, u.Audited = work.Committed, "", true
		return
	}
	if d.Tolerant(*u) && d.panels.askMore(l, i, 1) {
		return
	}
	m, ok := crew.Member{}, false
	if !d.Tolerant(*u) {
		if m, ok = d.drawn(l, *u); !ok {
			m.ID, ok = d.seated(l, *u)
		}
	}
	switch {
	case ok:
		d.appoint(l, i, m)
	case d.Terms.AuditPPM == 0:
		d.Accept(l, i)
	case u.FirstAttempt != "": // there is no other verifier for the second audit
		u.Passed = true
		d.Accept(l, i)
	default:
		u.Status, u.Verifier, u.Audited = work.Committed, "", true
	}
}

// Unanswered ends an audit or a challenge without an answer. An invalid seal counts as no answer.
func (d *Audits) Unanswered(l *work.RoundState, i int, who, why string) {
	u := l.Units[i]
	if u.Status == work.Sealed {
		d.Unit(l, i).Status = work.Auditing
	}
	d.Emit(event.Event{Kind: event.AuditMissed, Round: l.Round, Unit: u.Index, Who: who, Other: u.Worker, Why: why})
}

// Answered records that a verifier has answered an audit. The verifier starts its next one.
func (d *Audits) Answered(u work.Unit) { d.Responded(u.Verifier, u, u.AssignedAt) }

// Responded records that a verifier has answered an audit of a unit that it had since a height.
func (d *Audits) Responded(verifier string, u work.Unit, since int64) {
	blocks := d.Waited(since)
	d.AuditBlocks = schedule.Remember(d.AuditBlocks, blocks)
	d.Change(verifier, func(m *crew.Member) {
		m.Missed = 0
		m.Measure(d.Terms.Executed(u.Index, u.Segment, blocks<<8), false)
	})
	for _, l := range d.EditAll() {
		for i, v := range l.Units {
			switch {
			case v.OwesReport(verifier):
				v = d.Unit(l, i)
				v.Looks = slices.Clone(v.Looks)
				x := &v.Looks[v.ReportOf(verifier)]
				x.Since, x.Deadline = d.Env.Height, d.Due(verifier, d.AuditDeadline())
			case v.Status == work.Auditing && v.Verifier == verifier:
				v = d.Unit(l, i)
				v.AssignedAt, v.Deadline = d.Env.Height, d.Due(verifier, d.AuditDeadline())
			}
		}
	}
}

// LateAudits draws other verifiers for audits past their deadline. A verifier that is late with several audits has
// missed one deadline.
func (d *Audits) LateAudits() {
	type place struct {
		EditRound *work.RoundState
		Unit      int
	}
	var late []place
	var verifiers []string
	for _, l := range d.EditAll() {
		for i, u := range l.Units {
			if u.Status != work.Auditing || d.Env.Height <= u.Deadline || d.Tolerant(*u) {
				continue
			}
			late = append(late, place{l, i})
			d.Unanswered(l, i, u.Verifier, reason.MissedDeadline)
			if !slices.Contains(verifiers, u.Verifier) {
				verifiers = append(verifiers, u.Verifier)
			}
		}
	}
	for _, id := range verifiers {
		d.RecordMiss(id, reason.MissedAudits)
	}
	for _, p := range late {
		d.Audit(p.EditRound, p.Unit)
	}
}

// Accept marks a unit as accepted: nothing is open about it.
func (d *Audits) Accept(l *work.RoundState, i int) {
	u := d.Unit(l, i)
	u.Status = work.Accepted
	forgetLink(d, u)
	d.Emit(event.Event{Kind: event.UnitAccepted, Round: l.Round, Unit: u.Index, Who: u.Worker})
	if l == &d.RoundState {
		d.units.Withheld(i)
	}
}

// Hasten gives the audits and openings that began before a pace was known no more time than those that begin now: a
// verifier that never answers delays the end of a run by the time of a usual answer, and not by the deadline of the
// terms. A verifier without a measured speed has more time, as it would if its audit began now.
func (d *Audits) Hasten() {
	if len(d.AuditBlocks) < schedule.Trusted {
		return
	}
	blocks := d.AuditDeadline()
	for _, l := range d.EditAll() {
		for i, u := range l.Units {
			n := blocks
			switch {
			case u.Status == work.Sealed && !u.Question.IsZero():
				n *= transition.OpeningDeadlines
			case u.Status != work.Auditing:
				continue
			}
			if m, _ := d.Member(u.Verifier); m.Speed == 0 {
				n *= crew.Novice
			}
			if due := d.Due(u.Verifier, n); due < u.Deadline {
				d.Unit(l, i).Deadline = due
			}
		}
	}
}
