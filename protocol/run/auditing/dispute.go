package auditing

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// Suspect audits the units of a convicted worker in a round. A unit that passed an audit is audited again, over all
// segments, if another verifier is available: the one that passed it may be a friend of the worker.
func (d *Audits) Suspect(l *work.RoundState, worker string) {
	for i, u := range l.Units {
		switch {
		case u.Worker != worker || u.Status == work.Assigned || u.Status == work.Auditing || u.Status == work.Sealed ||
			d.Tolerant(*u):
		case u.Status == work.Disputed || u.Status == work.Committed: // it is audited when that is over
			u = d.Unit(l, i)
			u.Audited, u.Passed, u.Segment = true, false, 0
		case !u.Audited || d.Lookers() > 1 && (!u.Passed || d.Spares(u.Index)):
			u = d.Unit(l, i)
			u.Passed, u.Segment = false, 0
			d.Audit(l, i)
		}
	}
}

// CancelDisputes ends every audit and challenge of a unit that is taken from its worker.
func (d *Audits) CancelDisputes(l *work.RoundState, i int, why string) {
	u := d.Unit(l, i)
	switch {
	case u.Status != work.Auditing && u.Status != work.Sealed:
	case d.Tolerant(*u):
		d.panels.overlook(l, i, why, func(work.SealedReport) bool { return true })
		u.Panel = 0
	default:
		d.Unanswered(l, i, u.Verifier, why)
	}
	for _, id := range u.Challengers {
		d.Unanswered(l, i, id, why)
	}
	u.Challengers = nil
}

func (d *Audits) ShowPlant(l *work.RoundState, i int, segments []canon.Digest) {
	u := d.Unit(l, i)
	// A verifier that executed the unit to the end of a segment before the planted root could not see it.
	seen := u.Segment == 0 || !slices.Equal(u.Commit.Segments[:u.Segment+1], segments[:u.Segment+1])
	u.Commit.Segments, u.Commit.HiddenRoots = slices.Clone(segments), canon.Digest{}
	answered := u.Status == work.Sealed || u.Passed
	caught := false
	if m, known := d.Member(u.FirstAttempt); known && seen &&
		!crew.Unbelieved(m) { // it had passed the fault before a second verifier was drawn
		d.expel(l, u, u.FirstAttempt, reason.PlantPassed)
	}
	for _, id := range u.Challengers {
		if id == u.Verifier && !answered {
			caught = true
			continue
		}
		d.Unanswered(l, i, id, reason.Planted)
	}
	u.Challengers = nil
	switch {
	case answered && !seen:
		if u.Status == work.Disputed {
			u.Status = work.Accepted
		}
	case answered:
		if m, _ := d.Member(u.Verifier); !crew.Unbelieved(m) {
			d.broken(l, i, reason.PlantPassed)
		}
		d.Audit(l, i)
	case caught: // its audit continues, and so does its claim to pay
		u.Status, u.AssignedAt, u.Deadline = work.Auditing, d.Env.Height, d.Due(u.Verifier, d.AuditDeadline())
	case u.Audited && u.Status == work.Disputed:
		d.Audit(l, i)
	default:
		u.Status = work.Accepted
	}
}
