package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/run/admission"
	"github.com/starling-network/starling/protocol/run/assignment"
	"github.com/starling-network/starling/protocol/run/auditing"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/refusal"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Commit binds a worker to its result for an attempt at a unit, its own or one that it was late with (see Holder). The
// first commitment is the binding one: a second, equal or not, is refused.
func (s State) Commit(env transition.Env, from string, id work.UnitID,
	c work.Commitment) (State, []event.Event, error) {
	mine, err := heldBy(s, from, id)
	if err == nil {
		err = work.CheckCommitment(s.Terms, c, id.Round, id.Unit)
	}
	if err != nil {
		return s, nil, err
	}
	before, _ := s.At(id.Round)
	if c.Diverged() && s.Tolerant(*before.Units[id.Unit]) {
		return s, nil, fmt.Errorf("%w: no update of unit %d, which is not exact: that could not be checked",
			refusal.ErrBadCommitment, id.Unit)
	}
	if err := before.Agrees(s.Terms, id.Unit, c); err != nil {
		return s, nil, err
	}
	d := s.edit(env)
	l := d.EditRound(id.Round)
	late := l.Units[id.Unit].Attempt != id.Attempt
	if late {
		d.TakeBack(l, int(id.Unit), mine)
	}
	d.measure(from, id.Unit, mine, late)
	d.Change(from, func(m *crew.Member) { m.Commits++ })
	c.Segments = slices.Clone(c.Segments)
	u := d.Unit(l, int(id.Unit))
	u.Status, u.Commit, u.Took = work.Committed, c, d.Waited(mine.AssignedAt)
	if len(s.Terms.Pipeline.Flops) > 0 {
		u.Missing = nil // of those that waited for it: none has looked for its update
		assignment.Spare(d.Assignment, id.Unit)
	}
	d.Turn(from, 0)
	d.Hurry()
	d.Emit(event.Event{Kind: event.UnitCommitted, Round: id.Round, Unit: id.Unit, Who: from})
	after, events := d.finish()
	return after, events, nil
}

// measure measures the pace of a worker that commits a unit.
func (d *rules) measure(from string, unit uint32, mine work.PreviousAssignee, late bool) {
	m, _ := d.Member(from)
	blocks := d.Waited(mine.AssignedAt)
	switch {
	case d.Terms.IsDrawing(unit):
		if m.Commits > 0 && (!late || m.DrawSpeed == 0) { // with its first unit it has fetched the job
			d.DrawBlocks = schedule.Remember(d.DrawBlocks, min(terms.MaxBlocks, blocks))
			d.Change(from, func(m *crew.Member) { m.MeasureDrawing(blocks << 8) })
		}
		if !late && !d.FailedDrawing(from) {
			d.Change(from, func(m *crew.Member) { m.Missed = 0 })
		}
	case !late || m.Speed == 0: // a fault of a machine of known pace does not make it slow
		d.TrainBlocks = schedule.Remember(d.TrainBlocks, min(terms.MaxBlocks, d.Terms.Whole(unit, blocks)))
		d.Change(from, func(m *crew.Member) { m.Measure(d.Terms.Whole(unit, blocks<<8), d.Terms.Sizes != nil) })
	}
}

// Missing is the report of a member that it cannot fetch the update of a unit which the next checkpoint is made of, or
// that slice of it which it needs. It is an answer, if not the vote that was asked for. When more than half of the
// members other than its worker have said so, the unit is done again by another. Members also report answers of a unit
// that draws: see withholdAnswers. Of a stage under audit, a slice is a link into it, counted from 1: see lacksLink.
// A report about a round that is attested already gives the member time to execute the
// round again: see lineage. In a run of stages a worker says so while it trains, of a unit of its replica whose worker
// it waits for.
func (s State) Missing(env transition.Env, from string, id work.UnitID, slice uint32) (State, []event.Event, error) {
	if slice > 0 && s.Rules >= progress.HiddenLinks && len(s.Terms.Pipeline.Flops) > 0 {
		return lacksLink(s, env, from, id, slice)
	}
	u, err := admission.Unit(s.Progress, from, id)
	if err != nil {
		return s, nil, err
	}
	d := s.edit(env)
	if id.Round == s.Round && s.Phase == progress.Train && u.Worker != from && !slices.Contains(u.Missing, from) &&
		assignment.Awaits(d.Assignment, from, id.Unit) { // in a run of stages
		after, events := d.finish()
		return after, events, nil
	}
	switch {
	case u.Draws && u.Status == work.Assigned:
		return s, nil, fmt.Errorf("%w: unit %d is not committed", refusal.ErrWrongPhase, id.Unit)
	case u.Draws && !d.IsRead(id.Round) && !d.IsActive(u.Worker):
		return s, nil, fmt.Errorf("%w: every round that learns from round %d is attested, and %s has left", refusal.ErrStale,
			id.Round, u.Worker)
	case u.Draws:
	case id.Round < s.Round && s.Rules.Extend(s.Terms):
	case !slices.Contains(s.Terms.Applied(s.Round), id.Round):
		return s, nil, fmt.Errorf("%w: the next checkpoint is not made of the updates of round %d", refusal.ErrStale,
			id.Round)
	case s.Phase != progress.Attest && s.Phase != progress.Reduce && id.Round == s.Round:
		return s, nil, fmt.Errorf("%w: updates are fetched when every unit is committed", refusal.ErrWrongPhase)
	case u.Commit.Diverged():
		return s, nil, fmt.Errorf("%w: unit %d has no update", refusal.ErrWrongPhase, id.Unit)
	}
	switch {
	case u.Worker == from:
		return s, nil, fmt.Errorf("%w: unit %d is the sender's own", refusal.ErrNotYours, id.Unit)
	case slices.Contains(u.Missing, from):
		return s, nil, fmt.Errorf("%w: unit %d is reported", refusal.ErrDuplicate, id.Unit)
	case slice > 0 && slice >= s.Terms.Slices:
		return s, nil, fmt.Errorf("%w: slice %d, the round has %d", refusal.ErrBadSlice, slice, s.Terms.Slices)
	}
	l := d.EditRound(id.Round)
	v := d.Unit(l, int(id.Unit))
	if len(u.Missing) == 0 {
		v.Lost = slice
	}
	v.Missing = append(slices.Clip(u.Missing), from)
	if !u.Draws {
		d.Change(from, func(m *crew.Member) { m.Silent = 0 })
	}
	switch {
	case u.Draws:
		d.withholdAnswers(l, int(id.Unit))
	case id.Round == s.Round && (u.Status == work.Accepted || s.Tolerant(u)):
		d.Withheld(int(id.Unit))
	}
	after, events := d.finish()
	return after, events, nil
}

// lacksLink is the report of a member, or of a verifier without a seat, that the values of a link into a stage under
// audit cannot be had. See lineage.Rollbacks.HiddenLinks.
func lacksLink(s State, env transition.Env, from string, id work.UnitID, link uint32) (State, []event.Event, error) {
	u, err := admission.Answer(s.Progress, from, id)
	if err != nil {
		return s, nil, err
	}
	d := s.edit(env)
	if err := auditing.LacksLink(d.Audits, d.EditRoundOf(u), int(id.Unit), from, link); err != nil {
		return s, nil, err
	}
	after, events := d.finish()
	return after, events, nil
}

// withholdAnswers notes that most members other than its worker, and at least two owners, cannot fetch the answers of a
// unit. Its commitment stands, and is audited and disputed like any other: a worker that learns from it, and a verifier
// that audits that, draw it again. Its own worker is not paid for it, and has missed one deadline for all its units of
// the round.
func (d *rules) withholdAnswers(l *work.RoundState, i int) {
	u := l.Units[i]
	if u.Withheld || !d.MostSay(u.Worker, u.Missing) || !d.severalOwners(u.Missing) {
		return
	}
	again := slices.ContainsFunc(l.Units, func(o *work.Unit) bool { return o.Withheld && o.Worker == u.Worker })
	d.Unit(l, i).Withheld = true
	d.Emit(event.Event{Kind: event.AnswersWithheld, Round: l.Round, Unit: u.Index, Who: u.Worker})
	if !again {
		d.RecordMiss(u.Worker, reason.Unavailable)
	}
}

// severalOwners reports whether members work for different accounts.
func (d *rules) severalOwners(ids []string) bool {
	first, _ := d.Member(ids[0])
	return slices.ContainsFunc(ids, func(id string) bool {
		m, _ := d.Member(id)
		return m.OwnerID() != first.OwnerID()
	})
}
