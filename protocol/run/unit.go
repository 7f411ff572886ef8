package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/schedule"
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

// Subject is what the seal of a verifier over the state of the unit at the end of a segment, counted from 1 (0: the
// last), is about.
func (id UnitID) Subject(verifier, job string, segment uint32) audit.Subject {
	return audit.Subject{
		Verifier: verifier, Job: job, Round: id.Round, Unit: id.Unit, Attempt: id.Attempt, Segment: segment,
	}
}

// Commit binds a worker to its result for an attempt at a unit, its own or one that it was late with (see Holder). The
// first commitment is the binding one: a second, equal or not, is refused.
func (s State) Commit(env Env, from string, id UnitID, c Commitment) (State, []Event, error) {
	mine, err := heldBy(s, from, id)
	if err == nil {
		err = fits(s.Terms, c, id.Round, id.Unit)
	}
	if err != nil {
		return s, nil, err
	}
	if c.Diverged() && s.Tolerant(*s.Units[id.Unit]) {
		return s, nil, fmt.Errorf("%w: no update of unit %d, which is not exact: nobody could check that", ErrBadCommitment,
			id.Unit)
	}
	d := s.edit(env)
	late := s.Units[id.Unit].Attempt != id.Attempt
	if late {
		d.takeBack(int(id.Unit), mine)
	}
	if m, _ := s.Member(from); !late || m.Speed == 0 { // a fault of a machine of known pace does not make it slow
		blocks := d.waited(mine.AssignedAt)
		d.TrainBlocks = schedule.Remember(d.TrainBlocks, min(MaxBlocks, d.Terms.Whole(id.Unit, blocks)))
		d.change(from, func(m *Member) { m.measure(d.Terms.Whole(id.Unit, blocks<<8), d.Terms.Sizes != nil) })
	}
	d.change(from, func(m *Member) { m.Commits++ })
	c.Segments = slices.Clone(c.Segments)
	u := d.unit(&d.RoundState, int(id.Unit))
	u.Status, u.Commit, u.Took = Committed, c, d.waited(mine.AssignedAt)
	d.turn(from, 0)
	d.hurry()
	d.emit(Event{Kind: UnitCommitted, Round: id.Round, Unit: id.Unit, Who: from})
	after, events := d.finish()
	return after, events, nil
}

// turn gives a worker the whole time for its next unit. It begins now, unless it had it before that which it does no
// more: it may have been at it all the time, and is measured by that.
func (d *assignment) turn(worker string, before int64) {
	for i, u := range d.Units {
		if u.Status == Assigned && u.Worker == worker {
			u = d.unit(&d.RoundState, i)
			if u.Deadline = d.owed(worker, u.Index, d.env.Height); u.AssignedAt >= before {
				u.AssignedAt = d.env.Height
			}
		}
	}
}

// fits checks the shape of a commitment to a unit of a round.
func fits(t Terms, c Commitment, round, unit uint32) error {
	if err := carries(t, c, round); err != nil {
		return err
	}
	switch {
	case len(c.Segments) != int(t.SegmentsOf(unit))+1:
		return fmt.Errorf("%w: %d state roots, wanted %d", ErrBadCommitment, len(c.Segments), t.SegmentsOf(unit)+1)
	case c.HiddenRoots.IsZero():
		return fmt.Errorf("%w: no digest of hidden state roots", ErrBadCommitment)
	case len(c.Log) > MaxCID:
		return fmt.Errorf("%w: CID of a log of %d bytes, at most %d", ErrBadCommitment, len(c.Log), MaxCID)
	case c.Diverged() && c.Update.IsZero() && c.Bytes == 0:
		return nil
	case c.Update.IsZero():
		return fmt.Errorf("%w: no digest of the update", ErrBadCommitment)
	case !terms.ValidCID(c.UpdateCID):
		return fmt.Errorf("%w: CID of %d bytes, wanted 1 to %d", ErrBadCommitment, len(c.UpdateCID), MaxCID)
	case c.Bytes == 0:
		return fmt.Errorf("%w: an update of no bytes", ErrBadCommitment)
	}
	return nil
}

// measure smooths what a worker takes for a whole unit, in 1/256 block. Where units have different sizes it counts at
// once that one took less: what goes by beside the steps counts several times in what a small one says of a whole one.
func (m *Member) measure(parts int64, sized bool) {
	now := uint32(min(parts, MaxBlocks<<8))
	if m.Speed == 0 || sized && now < m.Speed {
		m.Speed = now
		return
	}
	m.Speed += (now >> 2) - (m.Speed >> 2)
}

// Missing is the report of a member that it cannot fetch the update of a unit which the next checkpoint is made of, or
// that slice of it which it needs. It is an answer, if not the vote that was asked for. When more than half of the
// members other than its worker have said so, the unit is done again by another.
func (s State) Missing(env Env, from string, id UnitID, slice uint32) (State, []Event, error) {
	u, err := admit(s, from, id)
	if err != nil {
		return s, nil, err
	}
	switch {
	case !slices.Contains(s.Terms.Applied(s.Round), id.Round):
		return s, nil, fmt.Errorf("%w: the next checkpoint is not made of the updates of round %d", ErrStale, id.Round)
	case s.Phase != Attest && s.Phase != Reduce && id.Round == s.Round:
		return s, nil, fmt.Errorf("%w: updates are fetched when every unit is committed", ErrWrongPhase)
	case u.Commit.Diverged():
		return s, nil, fmt.Errorf("%w: unit %d has no update", ErrWrongPhase, id.Unit)
	case u.Worker == from:
		return s, nil, fmt.Errorf("%w: unit %d is the sender's own", ErrNotYours, id.Unit)
	case slices.Contains(u.Missing, from):
		return s, nil, fmt.Errorf("%w: unit %d is reported", ErrDuplicate, id.Unit)
	case slice > 0 && slice >= s.Terms.Slices:
		return s, nil, fmt.Errorf("%w: slice %d, the round has %d", ErrBadSlice, slice, s.Terms.Slices)
	}
	d := s.edit(env)
	v := d.unit(d.lap(id.Round), int(id.Unit))
	if len(u.Missing) == 0 {
		v.Lost = slice
	}
	v.Missing = append(slices.Clip(u.Missing), from)
	d.change(from, func(m *Member) { m.Silent = 0 })
	if id.Round == s.Round && (u.Status == Accepted || s.Tolerant(u)) {
		d.withheld(int(id.Unit))
	}
	after, events := d.finish()
	return after, events, nil
}

// withheld gives an accepted unit of the current round to another worker if more than half of the members other than
// its worker cannot fetch its update. One that is still to be audited waits for that: a verifier does not need the
// update, so a liar cannot escape its verdict by withholding what it committed to. Of tolerant work there is no
// verdict, and its verifier does need the update.
func (d *assignment) withheld(i int) {
	u := *d.Units[i]
	if !d.most(u.Worker, u.Missing) {
		return
	}
	d.audits.cancelDisputes(&d.RoundState, i, WhyUnavailable)
	d.recordMiss(u.Worker, WhyUnavailable)
	d.reassign(i, WhyUnavailable)
	// Who could escape an audit so would fake every unit, and hide those that are drawn.
	if d.Tolerant(u) && u.Audited && !u.Passed && d.Terms.AuditPPM > 0 {
		d.emit(Event{Kind: DepositForfeited, Round: d.Round, Unit: u.Index, Who: u.Worker, Why: WhyUnavailable})
		d.distrust(u.Worker)
	}
}

// stuck reports whether the round cannot go on whoever is there: most members cannot fetch the update of a unit that is
// still to be audited, or in dispute. What is late until then is nobody's fault.
func (d *assignment) stuck() bool {
	return slices.ContainsFunc(d.Sent(), func(u *Unit) bool { return len(u.Missing) > 0 && d.most(u.Worker, u.Missing) })
}
