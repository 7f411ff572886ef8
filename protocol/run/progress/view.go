package progress

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// PreviousAssignments returns the attempts at a unit of a round that a worker was late with and may still commit.
func (p Progress) PreviousAssignments(worker string, round, unit uint32) []work.PreviousAssignee {
	l, ok := p.At(round)
	if m, _ := p.Member(worker); !ok || !m.Active || uint64(unit) >= uint64(len(l.Units)) ||
		l.Units[unit].Status != work.Assigned {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(l.Units[unit].PreviousAssignees),
		func(h work.PreviousAssignee) bool { return h.Worker != worker })
}

// Subject is the audit that the seal of a unit answers.
func (p Progress) Subject(round uint32, u work.Unit) audit.Subject {
	return audit.Subject{Verifier: u.Verifier, Job: p.Terms.Job, Round: round, Unit: u.Index, Attempt: u.Attempt,
		Segment: u.Segment}
}

// Tolerant reports whether an attempt at a unit is held against the tolerance, and not settled by its state roots.
func (p Progress) Tolerant(u work.Unit) bool { return p.Terms.Tolerance.DistancePPM > 0 && !u.Exact }

// Attestable reports whether the checkpoint after the current round can be attested: every unit that it is made of is
// committed, to an update, and, in a tolerant run, nothing is open about any.
func (p Progress) Attestable() bool {
	open := func(u *work.Unit) bool { return u.Status != work.Accepted }
	return p.Combines() && (p.Terms.Tolerance.DistancePPM == 0 || !slices.ContainsFunc(p.Units, open))
}

func (p Progress) Over() bool { return p.Phase == Done || p.Phase == Halted }

// Voted reports whether a member has attested the current round.
func (p Progress) Voted(id string) bool {
	return slices.ContainsFunc(p.Votes, func(v Vote) bool { return v.Member == id })
}

// Attestation is the statement that a member signs if the checkpoint after the current round has this root and CID. It
// is defined once all units that the checkpoint is made of are committed, see Combines.
func (p Progress) Attestation(next terms.Checkpoint) Attestation {
	sent := p.Sent()
	a := Attestation{Job: p.Terms.Job, Checkpoint: next, Updates: make([]string, len(sent))}
	for i, u := range sent {
		a.Updates[i] = u.Commit.UpdateCID
	}
	return a
}

// Forfeited reports whether a unit is of a round that was rolled back, and of a worker that is convicted. It counts for
// nothing and is not paid, so that there is nothing left to challenge: a second verdict on it would be paid again.
func (p Progress) Forfeited(u work.AuditTarget) bool {
	return p.Convicted(u.Worker) &&
		slices.ContainsFunc(p.RolledBack, func(l work.RoundState) bool { return l.Has(u.ID()) })
}
