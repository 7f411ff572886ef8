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

// An account that joins a run in progress begins with a probation, without units, audits or a vote. It executes a unit
// that others have finished, and shows, as a verifier does in an audit, that it reached the same state: with a seal
// that a later beacon asks it to open. So a machine that computes other results, or is not ready, neither votes nor
// misses deadlines. A probation is not paid and risks no stake. In a tolerant run the member shows that it can execute
// a unit exactly, as audits, attestation and the repetition of withheld units require: it must reach the state that
// the verifiers of the unit found, and not the one that its worker committed to. A tolerant run without audits has no
// such unit, and no probation.

// ProbationTask is a unit with a known result, which a member on probation executes. The zero value is none.
type ProbationTask struct {
	Round   uint32           `cbor:"1,keyasint"`
	Unit    uint32           `cbor:"2,keyasint"`
	Attempt uint32           `cbor:"3,keyasint"`
	Base    terms.Checkpoint `cbor:"4,keyasint"` // what the round starts from
	Worker  string           `cbor:"5,keyasint"` // the worker that committed it
	Commit  work.Commitment  `cbor:"6,keyasint"`
}

// ID names the attempt that is executed again.
func (e ProbationTask) ID() work.UnitID {
	return work.UnitID{Round: e.Round, Unit: e.Unit, Attempt: e.Attempt}
}

func (e ProbationTask) Is(id work.UnitID) bool {
	return e.Worker != "" && e.Round == id.Round && e.Unit == id.Unit && e.Attempt == id.Attempt
}

// Probation is the progress of a member's probation.
type Probation struct {
	Member   string        `cbor:"1,keyasint"`
	Tries    uint32        `cbor:"2,keyasint"` // tasks given
	Task     ProbationTask `cbor:"3,keyasint"` // none while there is no unit to give
	Seal     canon.Digest  `cbor:"4,keyasint"` // the member's; zero until it has one
	Question canon.Digest  `cbor:"5,keyasint"` // where the seal must be opened; zero until it is drawn
	Asked    int64         `cbor:"6,keyasint"` // height from which the member could do its current duty
	Deadline int64         `cbor:"7,keyasint"` // height by which the seal, or its opening, is due
}

// Probation returns the probation of a member.
func (t Newcomers) Probation(id string) (Probation, bool) {
	i := slices.IndexFunc(t.Probations, func(t Probation) bool { return t.Member == id })
	if i < 0 {
		return Probation{}, false
	}
	return t.Probations[i], true
}

// MayJoin reports whether Join would take an account in: it is no member yet, or one that left and is not liable; or
// one that returns.
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

// ProbationSegment is the segment to the end of which a probation task executes its unit, counted from 1; 0: all of
// it, and its update.
func (p Progress) ProbationSegment(x ProbationTask) uint32 {
	if p.Terms.Carry > 0 || p.Terms.Tolerance.DistancePPM > 0 {
		return p.Terms.SegmentsOf(x.Unit)
	}
	return 0
}

// ProbationSubject is the subject of the seal of a member on probation: its task.
func (p Progress) ProbationSubject(t Probation) audit.Subject {
	return audit.Subject{Verifier: t.Member, Job: p.Terms.Job, Round: t.Task.Round, Unit: t.Task.Unit,
		Attempt: t.Task.Attempt, Segment: p.ProbationSegment(t.Task)}
}
