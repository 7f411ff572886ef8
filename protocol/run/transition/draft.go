// Package transition is a run while a message changes it: a draft of its state, what the block gives to it, what
// happened, and what the budget covers. It has the steps that every rule takes, such as to let a member go or to halt
// the run, and no rule of its own.
package transition

import (
	"bytes"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// Shuffled orders members by a digest of the beacon.
func (d *Draft) Shuffled(ids []string) []string {
	key := func(id string) canon.Digest {
		return canon.Sum("starling/deal/1", d.Env.Beacon[:], []byte(d.Terms.Job), []byte(id))
	}
	type card struct {
		id  string
		key canon.Digest
	}
	cards := make([]card, len(ids))
	for i, id := range ids {
		cards[i] = card{id, key(id)}
	}
	slices.SortFunc(cards, func(a, b card) int { return bytes.Compare(a.key[:], b.key[:]) })
	order := make([]string, len(ids))
	for i, c := range cards {
		order[i] = c.id
	}
	return order
}

// MaxMissed is how many deadlines in a row a member may miss before it takes no further part.
const MaxMissed = 3

// MaxMissedAlone is how many the last active member of a role may miss: without it the run would end, so it is waited
// for while others may join.
const MaxMissedAlone = 12

// Draft is a copy of a state that a transition edits: the rounds, the members and the phase, what happened, and what
// the budget covers.
type Draft struct {
	progress.Progress
	Env    Env
	Events []event.Event
	// commitments that a verdict about another unit of the round has made void
	Voided []work.RoundState
	copied map[*work.Unit]bool                               // units that no other state has
	more   func(unit uint32, price uint64, spared bool) bool // what the budget covers besides, see covers
}

// Begin begins a transition. It copies what transitions write in place, but for the units, of which unit copies those
// that are written. The slices inside a unit, and the votes and waits, are only replaced.
func Begin(s progress.Progress, env Env) *Draft {
	s.Members = slices.Clone(s.Members)
	s.Units = slices.Clone(s.Units)
	s.Probations = slices.Clone(s.Probations)
	s.Open = slices.Clone(s.Open)
	s.RolledBack = slices.Clone(s.RolledBack)
	s.Slices = slices.Clone(s.Slices)
	for i := range s.Slices {
		s.Slices[i].Reducers = slices.Clone(s.Slices[i].Reducers)
	}
	for _, rounds := range [][]work.RoundState{s.Open, s.RolledBack} {
		for i := range rounds {
			rounds[i].Units = slices.Clone(rounds[i].Units)
		}
	}
	return &Draft{Progress: s, Env: env}
}

// Unit returns a unit of a round for editing. It replaces the unit by a copy first, since other states share it.
func (d *Draft) Unit(l *work.RoundState, i int) *work.Unit {
	u := l.Units[i]
	if d.copied[u] {
		return u
	}
	if d.copied == nil {
		d.copied = map[*work.Unit]bool{}
	}
	own := *u
	l.Units[i], d.copied[&own] = &own, true
	return &own
}

// EditRounds are the rounds that are not final, to be edited: the open ones, oldest first, and the current one.
func (d *Draft) EditRounds() []*work.RoundState {
	rounds := make([]*work.RoundState, 0, len(d.Open)+1)
	for i := range d.Open {
		rounds = append(rounds, &d.Open[i])
	}
	return append(rounds, &d.RoundState)
}

func (d *Draft) EditRound(round uint32) *work.RoundState {
	rounds := d.EditRounds()
	return rounds[round-rounds[0].Round]
}

// EditAll lists the rounds with units that may still have consequences for a member.
func (d *Draft) EditAll() []*work.RoundState {
	rounds := d.EditRounds()
	for i := range d.RolledBack {
		rounds = append(rounds, &d.RolledBack[i])
	}
	return rounds
}

// EditRoundOf is the round of an attempt at a unit that locate has found.
func (d *Draft) EditRoundOf(u work.AuditTarget) *work.RoundState {
	for i := range d.RolledBack {
		if l := &d.RolledBack[i]; l.Has(u.ID()) {
			return l
		}
	}
	return d.EditRound(u.Round)
}

func (d *Draft) Emit(e event.Event) {
	e.Job = d.Terms.Job
	d.Events = append(d.Events, e)
}

// WhyGone is why a duty of an inactive member moves on: because it left the run in good standing, or as given.
func (d *Draft) WhyGone(id, otherwise string) string {
	if m, _ := d.Member(id); m.Why == reason.Left {
		return reason.Left
	}
	return otherwise
}

// Reopen goes back to training: draws, slices and votes start over when every unit is committed again.
func (d *Draft) Reopen() {
	d.Closed, d.Drawn, d.Attested, d.Votes, d.Slices = 0, false, 0, nil, nil
	d.Enter(progress.Train)
}

func (d *Draft) Enter(p progress.Phase) { d.Phase, d.Since = p, d.Env.Height }

func (d *Draft) Halt(why string) {
	d.Enter(progress.Halted)
	d.Why = why
	for _, l := range d.EditAll() {
		d.ReturnDeposits(*l, reason.Halted)
	}
	d.Emit(event.Event{Kind: event.RunHalted, Round: d.Round, Why: why})
}

func (d *Draft) Halted() bool { return d.Phase == progress.Halted }

// Change changes one member, if it is one.
func (d *Draft) Change(id string, f func(*crew.Member)) {
	if i, ok := d.Index(id); ok {
		f(&d.Members[i])
	}
}

// Leave makes a member inactive, or ends its probation. Its duties are released when the draft is done.
func (d *Draft) Leave(id, why string) {
	if m, _ := d.Member(id); !m.Participating() && !m.IsGuest() {
		return
	}
	d.Probations = slices.DeleteFunc(d.Probations, func(t progress.Probation) bool { return t.Member == id })
	d.Change(id, func(m *crew.Member) { m.Active, m.Why, m.Since = false, why, d.Env.Height })
	d.Emit(event.Event{Kind: event.MemberLeft, Round: d.Round, Who: id, Why: why})
}

// RecordMiss counts a missed deadline of a member, and excludes it after too many.
func (d *Draft) RecordMiss(id, why string) {
	d.Change(id, func(m *crew.Member) { m.Missed++ })
	m, _ := d.Member(id)
	if m.IsGuest() { // the run does not wait for guests, and others are drawn
		return
	}
	peers := d.Active(m.Role)
	if m.Class() == crew.Worker {
		peers = crew.Learners(d.Crew)
	}
	if m.Missed >= MaxMissedAlone || m.Missed >= MaxMissed && len(peers) > 1 {
		d.Leave(id, why)
	}
}

func (d *Draft) Pick(purpose string, round uint32, u work.Unit, n int) int {
	return audit.Pick(d.Env.Beacon, purpose, d.Terms.Job, round, u.Index, u.Attempt, n)
}

// ReturnDeposits gives deposits back that nothing will settle: the exact execution is void, or the run ends before it
// counts.
func (d *Draft) ReturnDeposits(l work.RoundState, why string) {
	for _, u := range l.Units {
		if u.Held != nil {
			d.Emit(event.Event{Kind: event.DepositReturned, Round: l.Round, Unit: u.Index, Who: u.Held.Worker, Why: why})
		}
	}
}

// Frozen reports whether the audits of a round are suspended.
func (d *Draft) Frozen(l *work.RoundState) bool { return d.Terms.Freezes() && d.IsVoid(l) }

// IsVoid reports whether a round was rolled back.
func (d *Draft) IsVoid(l *work.RoundState) bool {
	for k := range d.RolledBack {
		if l == &d.RolledBack[k] {
			return true
		}
	}
	return false
}
