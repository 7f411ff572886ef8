package run

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/audit"
)

// patience is how many deadlines in a row a member may miss before it takes no further part.
const patience = 3

// draft is a copy of a state that a transition edits. The transition says what happened to a unit or a member; done then
// draws the consequences for everything else.
type draft struct {
	State
	env    Env
	events []Event
}

// edit copies what transitions write in place. The slices inside a unit, and the votes and waits, are only replaced.
func (s State) edit(env Env) *draft {
	s.Members = slices.Clone(s.Members)
	s.Units = slices.Clone(s.Units)
	return &draft{State: s, env: env}
}

// done releases the duties of members who left, and lets the phase follow the units.
func (d *draft) done() (State, []Event) {
	d.release()
	d.follow()
	return d.State, d.events
}

func (d *draft) emit(e Event) {
	e.Job, e.Round = d.Terms.Job, d.Round
	d.events = append(d.events, e)
}

// release hands on what inactive members still had to do. In a run that just halted it only ends it.
func (d *draft) release() {
	for i := range d.Units {
		u := d.Units[i]
		switch {
		case u.Status == Assigned && !d.active(u.Worker):
			d.reassign(i, WhyWorkerLeft)
		case u.Status == Auditing && !d.active(u.Verifier):
			d.unanswered(i, WhyVerifierLeft)
			d.audit(i)
		}
	}
}

// follow sets the phase that the units are in.
func (d *draft) follow() {
	if d.Phase != Train && d.Phase != Exchange && d.Phase != Attest {
		return
	}
	phase := Attest
	for _, u := range d.Units {
		if u.Status == Assigned {
			phase = Train
			break
		}
		if u.Status != Accepted {
			phase = Exchange
		}
	}
	if phase != d.Phase {
		d.enter(phase)
	}
}

// enter begins a phase. In Assign and Train there are commitments to come, so draws and votes start over.
func (d *draft) enter(p Phase) {
	d.Phase, d.Since = p, d.env.Height
	if p == Assign || p == Train {
		d.Drawn, d.Votes = false, nil
	}
}

func (d *draft) halt(why string) {
	d.enter(Halted)
	d.Why = why
	d.emit(Event{Kind: RunHalted, Why: why})
}

func (d *draft) halted() bool { return d.Phase == Halted }

func (d *draft) active(id string) bool {
	i, ok := d.member(id)
	return ok && d.Members[i].Active
}

// change changes one member, if it is one.
func (d *draft) change(id string, f func(*Member)) {
	if i, ok := d.member(id); ok {
		f(&d.Members[i])
	}
}

// leave makes a member inactive. Its duties are released when the draft is done.
func (d *draft) leave(id, why string) {
	if !d.active(id) {
		return
	}
	d.change(id, func(m *Member) { m.Active, m.Why = false, why })
	d.emit(Event{Kind: MemberLeft, Who: id, Why: why})
}

// miss counts a missed deadline of a member, and lets it go when patience ends.
func (d *draft) miss(id, why string) {
	d.change(id, func(m *Member) { m.Missed++ })
	if m, ok := d.Member(id); ok && m.Missed >= patience {
		d.leave(id, why)
	}
}

// accept lets a unit count.
func (d *draft) accept(i int) {
	u := &d.Units[i]
	u.Status = Accepted
	d.emit(Event{Kind: UnitAccepted, Unit: u.Index, Who: u.Worker})
}

// reassign gives a unit to another worker: of those who have not failed it, or else of all, one with the fewest open
// units. Once an audit of a unit is drawn, all its later attempts are audited.
func (d *draft) reassign(i int, why string) {
	if d.halted() {
		return
	}
	old := d.Units[i]
	next := Unit{
		Index:      old.Index,
		Status:     Assigned,
		Attempt:    old.Attempt + 1,
		AssignedAt: d.env.Height,
		Audited:    old.Audited || why == WhyVerdict,
		Refused:    old.Refused,
	}
	if !slices.Contains(next.Refused, old.Worker) {
		next.Refused = append(slices.Clip(next.Refused), old.Worker)
	}
	d.Units[i] = next // nobody's while open units are counted
	next.Worker = d.substitute(next)
	next.Deadline = d.due(next.Worker, d.TrainDeadline())
	if next.Worker == old.Worker {
		next.AssignedAt = old.AssignedAt
	}
	d.Units[i] = next
	d.emit(Event{Kind: UnitReassigned, Unit: next.Index, Who: old.Worker, Other: next.Worker, Why: why})
	if next.Worker == "" {
		d.halt(WhyNoWorkers)
	}
}

func (d *draft) substitute(u Unit) string {
	pool := d.Active(Worker)
	fresh := slices.DeleteFunc(slices.Clone(pool), func(id string) bool { return slices.Contains(u.Refused, id) })
	if len(fresh) > 0 {
		pool = fresh
	}
	if len(pool) == 0 {
		return ""
	}
	open := make(map[string]int)
	for _, other := range d.Units {
		if other.Status == Assigned {
			open[other.Worker]++
		}
	}
	fewest := open[pool[0]]
	for _, id := range pool {
		fewest = min(fewest, open[id])
	}
	pool = slices.DeleteFunc(pool, func(id string) bool { return open[id] > fewest })
	return pool[d.pick("substitute", u, len(pool))]
}

// audit draws a verifier for a unit: another than it has, if there is another. Without any verifier a run that wants
// audits cannot go on.
func (d *draft) audit(i int) {
	u := &d.Units[i]
	pool := d.Active(Verifier)
	others := slices.DeleteFunc(slices.Clone(pool), func(id string) bool { return id == u.Verifier })
	switch {
	case d.halted():
		return
	case len(others) > 0:
		pool = others
	case len(pool) == 0 && d.Terms.AuditPPM == 0:
		d.accept(i)
		return
	case len(pool) == 0:
		d.halt(WhyNoVerifiers)
		return
	}
	chosen := pool[d.pick("verifier", *u, len(pool))]
	if u.Status != Auditing || u.Verifier != chosen {
		u.AssignedAt = d.env.Height
	}
	u.Status, u.Verifier, u.Audited = Auditing, chosen, true
	u.Deadline = d.due(chosen, d.AuditDeadline())
	d.emit(Event{Kind: AuditDrawn, Unit: u.Index, Who: u.Verifier, Other: u.Worker})
}

// unanswered ends an audit without an answer.
func (d *draft) unanswered(i int, why string) {
	u := d.Units[i]
	d.emit(Event{Kind: AuditMissed, Unit: u.Index, Who: u.Verifier, Other: u.Worker, Why: why})
}

func (d *draft) pick(purpose string, u Unit, n int) int {
	return audit.Pick(d.env.Beacon, purpose, d.Terms.Job, d.Round, u.Index, u.Attempt, n)
}

// admit finds the unit that a message of a member is about, and checks that both are still there.
func (s State) admit(from string, round, unit uint32) (Unit, error) {
	if err := s.sender(from, round); err != nil {
		return Unit{}, err
	}
	if len(s.Units) == 0 {
		return Unit{}, fmt.Errorf("%w: the units of round %d are not dealt yet", ErrWrongPhase, s.Round)
	}
	if uint64(unit) >= uint64(len(s.Units)) {
		return Unit{}, fmt.Errorf("%w: unit %d, the round has %d", ErrNoUnit, unit, len(s.Units))
	}
	return s.Units[unit], nil
}

func (s State) sender(from string, round uint32) error {
	m, ok := s.Member(from)
	switch {
	case s.Phase == Done || s.Phase == Halted:
		return fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	case !ok:
		return fmt.Errorf("%w: %s", ErrNotMember, from)
	case !m.Active:
		return fmt.Errorf("%w: %s (%s)", ErrInactive, from, m.Why)
	case round != s.Round:
		return fmt.Errorf("%w: round %d, the run is in round %d", ErrStale, round, s.Round)
	}
	return nil
}
