package run

import (
	"slices"

	"github.com/starling-network/starling/protocol/audit"
)

// patience is how many deadlines in a row a member may miss before it takes no further part.
const patience = 3

// lastPatience is how many the last active member of a role may miss: without it the run would end, so it is waited for
// while others may join.
const lastPatience = 12

// draft is a copy of a state that a transition edits: the rounds, the members and the phase, what happened, and what
// the budget covers.
type draft struct {
	State
	env    Env
	events []Event
	copied map[*Unit]bool                                    // units that no other state has
	more   func(unit uint32, price uint64, spared bool) bool // what the budget covers besides, see covers
}

// unit is a unit of a round of the draft, to be edited: a copy of the one that other states have. What was found in the
// round before stays as it was.
func (d *draft) unit(l *RoundState, i int) *Unit {
	u := l.Units[i]
	if d.copied[u] {
		return u
	}
	if d.copied == nil {
		d.copied = map[*Unit]bool{}
	}
	own := *u
	l.Units[i], d.copied[&own] = &own, true
	return &own
}

// rounds are the rounds that are not final, to be edited: the open ones, oldest first, and the current one.
func (d *draft) rounds() []*RoundState {
	laps := make([]*RoundState, 0, len(d.Open)+1)
	for i := range d.Open {
		laps = append(laps, &d.Open[i])
	}
	return append(laps, &d.RoundState)
}

func (d *draft) lap(round uint32) *RoundState {
	laps := d.rounds()
	return laps[round-laps[0].Round]
}

// all are the laps about whose units somebody may have to answer.
func (d *draft) all() []*RoundState {
	laps := d.rounds()
	for i := range d.RolledBack {
		laps = append(laps, &d.RolledBack[i])
	}
	return laps
}

// of is the lap of an attempt at a unit that locate has found.
func (d *draft) of(u AuditTarget) *RoundState {
	for i := range d.RolledBack {
		if l := &d.RolledBack[i]; l.has(u.ID()) {
			return l
		}
	}
	return d.lap(u.Round)
}

func (d *draft) emit(e Event) {
	e.Job = d.Terms.Job
	d.events = append(d.events, e)
}

// gone is why a duty of an inactive member moves on: because it left the run in good standing, or as given.
func (d *draft) gone(id, otherwise string) string {
	if m, _ := d.Member(id); m.Why == WhyLeft {
		return WhyLeft
	}
	return otherwise
}

// reopen goes back to training: draws, slices and votes start over when every unit is committed again.
func (d *draft) reopen() {
	d.Closed, d.Drawn, d.Attested, d.Votes, d.Slices = 0, false, 0, nil, nil
	d.enter(Train)
}

func (d *draft) enter(p Phase) { d.Phase, d.Since = p, d.env.Height }

func (d *draft) halt(why string) {
	d.enter(Halted)
	d.Why = why
	for _, l := range d.all() {
		d.returned(*l, WhyHalted)
	}
	d.emit(Event{Kind: RunHalted, Round: d.Round, Why: why})
}

func (d *draft) halted() bool { return d.Phase == Halted }

// change changes one member, if it is one.
func (d *draft) change(id string, f func(*Member)) {
	if i, ok := d.member(id); ok {
		f(&d.Members[i])
	}
}

// leave makes a member inactive, or ends its trial. Its duties are released when the draft is done.
func (d *draft) leave(id, why string) {
	if m, _ := d.Member(id); !m.participating() && !m.guest() {
		return
	}
	d.Probations = slices.DeleteFunc(d.Probations, func(t Probation) bool { return t.Member == id })
	d.change(id, func(m *Member) { m.Active, m.Why, m.Since = false, why, d.env.Height })
	d.emit(Event{Kind: MemberLeft, Round: d.Round, Who: id, Why: why})
}

// recordMiss counts a missed deadline of a member, and lets it go when patience ends.
func (d *draft) recordMiss(id, why string) {
	d.change(id, func(m *Member) { m.Missed++ })
	m, _ := d.Member(id)
	if m.guest() { // nobody waits for it, and others are drawn
		return
	}
	if m.Missed >= lastPatience || m.Missed >= patience && len(d.Active(m.Role)) > 1 {
		d.leave(id, why)
	}
}

func (d *draft) pick(purpose string, round uint32, u Unit, n int) int {
	return audit.Pick(d.env.Beacon, purpose, d.Terms.Job, round, u.Index, u.Attempt, n)
}
