package work

import (
	"fmt"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/terms"
)

// UnitID names one attempt at a unit of a round.
type UnitID struct {
	Round, Unit, Attempt uint32
}

// ID names the unit, which is of a round.
func (u Unit) ID(round uint32) UnitID { return UnitID{Round: round, Unit: u.Index, Attempt: u.Attempt} }

// ID names the unit of the duty.
func (d AuditTarget) ID() UnitID { return d.Unit.ID(d.Round) }

// Subject is the audit that a verifier's seal over the state of the unit at the end of a segment, counted from 1 (0:
// the last), answers.
func (id UnitID) Subject(verifier, job string, segment uint32) audit.Subject {
	return audit.Subject{
		Verifier: verifier, Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt, Segment: segment,
	}
}

// CheckCommitment checks the shape of a commitment to a unit of a round.
func CheckCommitment(t terms.Terms, c Commitment, round, unit uint32) error {
	if t.IsDrawing(unit) {
		return checkDrawn(c)
	}
	check := carries
	if len(t.Pipeline.Flops) > 0 {
		check = checkLinks
		round = unit
	} else if len(c.Links) > 0 {
		return fmt.Errorf("%w: links of a unit that is no stage", refusal.ErrBadCommitment)
	}
	if err := check(t, c, round); err != nil {
		return err
	}
	switch {
	case len(c.Segments) != int(t.SegmentsOf(unit))+1:
		return fmt.Errorf("%w: %d state roots, wanted %d", refusal.ErrBadCommitment, len(c.Segments), t.SegmentsOf(unit)+1)
	case c.HiddenRoots.IsZero():
		return fmt.Errorf("%w: no digest of hidden state roots", refusal.ErrBadCommitment)
	case len(c.Log) > terms.MaxCID:
		return fmt.Errorf("%w: CID of a log of %d bytes, at most %d", refusal.ErrBadCommitment, len(c.Log), terms.MaxCID)
	case c.Diverged() && c.Update.IsZero() && c.Bytes == 0:
		return nil
	case c.Update.IsZero():
		return fmt.Errorf("%w: no digest of the update", refusal.ErrBadCommitment)
	case !terms.ValidCID(c.UpdateCID):
		return fmt.Errorf("%w: CID of %d bytes, wanted 1 to %d", refusal.ErrBadCommitment, len(c.UpdateCID), terms.MaxCID)
	case c.Bytes == 0:
		return fmt.Errorf("%w: an update of no bytes", refusal.ErrBadCommitment)
	}
	return nil
}

// checkDrawn checks the shape of a commitment to a unit that draws: it passes on what it drew, and has no update.
func checkDrawn(c Commitment) error {
	switch {
	case len(c.Segments) != 2:
		return fmt.Errorf("%w: %d state roots, wanted 2", refusal.ErrBadCommitment, len(c.Segments))
	case c.HiddenRoots.IsZero():
		return fmt.Errorf("%w: no digest of hidden state roots", refusal.ErrBadCommitment)
	case len(c.Log) > terms.MaxCID:
		return fmt.Errorf("%w: CID of a log of %d bytes, at most %d", refusal.ErrBadCommitment, len(c.Log), terms.MaxCID)
	case !c.Update.IsZero() || c.UpdateCID != "":
		return fmt.Errorf("%w: an update of a unit that draws", refusal.ErrBadCommitment)
	case c.HandedState.Root.IsZero() || !terms.ValidCID(c.HandedState.CID):
		return fmt.Errorf("%w: no root of the answers, or a CID of %d bytes, wanted 1 to %d",
			refusal.ErrBadCommitment, len(c.HandedState.CID), terms.MaxCID)
	}
	return nil
}
