package progress

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/work"
)

// Who joins a run that goes on counts for nothing at first: it gets no units and no audits, and has no vote. It is
// given a unit that others have done, as a verifier is given one to audit, and shows in the same way that it reached
// the same state: with a seal that a later beacon asks it to open. That keeps a machine that computes something else,
// or is not yet there, out of the quorum and away from deadlines. It is paid nothing for it, and loses nothing but
// time. In a tolerant run it shows that it can execute a unit exactly, as those do who audit, attest, and do again what
// is withheld: the state is the one that the verifiers of the unit have found, and not the one that its worker
// committed to. A run without audits has no such unit, and no trial.

// ProbationTask is a unit of which it is known what comes out. The zero value is none.
type ProbationTask struct {
	Round   uint32           `cbor:"1,keyasint"`
	Unit    uint32           `cbor:"2,keyasint"`
	Attempt uint32           `cbor:"3,keyasint"`
	Base    terms.Checkpoint `cbor:"4,keyasint"` // what the round starts from
	Worker  string           `cbor:"5,keyasint"` // who committed
	Commit  work.Commitment  `cbor:"6,keyasint"`
}

// ID names the attempt that is executed again.
func (e ProbationTask) ID() work.UnitID {
	return work.UnitID{Round: e.Round, Unit: e.Unit, Attempt: e.Attempt}
}

func (e ProbationTask) Is(id work.UnitID) bool {
	return e.Worker != "" && e.Round == id.Round && e.Unit == id.Unit && e.Attempt == id.Attempt
}

// Probation is where a member stands that is to show that it computes what the others do.
type Probation struct {
	Member   string        `cbor:"1,keyasint"`
	Tries    uint32        `cbor:"2,keyasint"` // exams given
	Task     ProbationTask `cbor:"3,keyasint"` // none while there is no unit to give
	Seal     canon.Digest  `cbor:"4,keyasint"` // the member's; zero until it has one
	Question canon.Digest  `cbor:"5,keyasint"` // says where the seal must be opened; zero until it is drawn
	Asked    int64         `cbor:"6,keyasint"` // height from which who has the current duty could be at it
	Deadline int64         `cbor:"7,keyasint"` // height by which the seal, or its opening, is due
}

// Probation returns the trial of a member that is on trial.
func (t Newcomers) Probation(id string) (Probation, bool) {
	i := slices.IndexFunc(t.Probations, func(t Probation) bool { return t.Member == id })
	if i < 0 {
		return Probation{}, false
	}
	return t.Probations[i], true
}

// MayJoin reports whether Join would take an account in: it is no member yet, or one that left, of whose work nothing
// is open; or one that returns.
func (p Progress) MayJoin(id string, r crew.Role) bool {
	m, ok := p.Member(id)
	switch {
	case p.Over():
		return false
	case !ok:
		return len(p.Members) < terms.MaxMembers
	}
	return m.Role == r && !m.Active &&
		(m.Why == reason.Returning || (m.Why == reason.Left || m.IsGuest()) && !p.Liable(id))
}

// MayReturn reports whether Return would be accepted.
func (p Progress) MayReturn(id string, height int64) bool {
	m, ok := p.Member(id)
	return ok && !p.Over() && m.Absent() && height >= m.Since+p.RestBlocks(m)
}

func (p Progress) RestBlocks(m crew.Member) int64 { return p.TrainDeadline() << min(m.Returns, 16) }

// Removed reports whether a member is out of the run for good, or has left it.
func (p Progress) Removed(id string) bool {
	m, ok := p.Member(id)
	return p.Over() || !ok || !m.Participating() && m.Why != reason.Returning && !m.Absent()
}

// ProbationSegment is the segment to the end of which an exam executes its unit, counted from 1; 0: all of it, and its
// update.
func (p Progress) ProbationSegment(x ProbationTask) uint32 {
	if p.Terms.Carry > 0 || p.Terms.Tolerance.DistancePPM > 0 {
		return p.Terms.SegmentsOf(x.Unit)
	}
	return 0
}

// ProbationSubject is what the seal of a member on trial answers: its exam.
func (p Progress) ProbationSubject(t Probation) audit.Subject {
	return audit.Subject{Verifier: t.Member, Job: p.Terms.Job, Round: t.Task.Round, Unit: t.Task.Unit,
		Attempt: t.Task.Attempt, Segment: p.ProbationSegment(t.Task)}
}
