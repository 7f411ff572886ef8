package run

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/starling-network/starling/protocol/audit"
)

// patience is how many deadlines in a row a member may miss before it takes no further part.
const patience = 3

// lastPatience is how many the last active member of a role may miss: without it the run would end, so it is waited for
// while others may join.
const lastPatience = 12

// transition is a copy of a state that a transition edits. The transition says what happened to a unit or a member;
// done then draws the consequences for everything else.
type transition struct {
	State
	env    Env
	events []Event
	copied map[*Unit]bool                                    // units that no other state has
	more   func(unit uint32, price uint64, spared bool) bool // what the budget covers besides, see covers
}

// edit copies what transitions write in place, but for the units, of which unit copies those that are written. The
// slices inside a unit, and the votes and waits, are only replaced.
func (s State) edit(env Env) *transition {
	s.Members = slices.Clone(s.Members)
	s.Units = slices.Clone(s.Units)
	s.Probations = slices.Clone(s.Probations)
	s.Open = slices.Clone(s.Open)
	s.RolledBack = slices.Clone(s.RolledBack)
	s.Slices = slices.Clone(s.Slices)
	for i := range s.Slices {
		s.Slices[i].Reducers = slices.Clone(s.Slices[i].Reducers)
	}
	for _, laps := range [][]RoundState{s.Open, s.RolledBack} {
		for i := range laps {
			laps[i].Units = slices.Clone(laps[i].Units)
		}
	}
	return &transition{State: s, env: env}
}

// unit is a unit of a round of the draft, to be edited: a copy of the one that other states have. What was found in the
// round before stays as it was.
func (d *transition) unit(l *RoundState, i int) *Unit {
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
func (d *transition) rounds() []*RoundState {
	laps := make([]*RoundState, 0, len(d.Open)+1)
	for i := range d.Open {
		laps = append(laps, &d.Open[i])
	}
	return append(laps, &d.RoundState)
}

func (d *transition) lap(round uint32) *RoundState {
	laps := d.rounds()
	return laps[round-laps[0].Round]
}

// all are the laps about whose units somebody may have to answer.
func (d *transition) all() []*RoundState {
	laps := d.rounds()
	for i := range d.RolledBack {
		laps = append(laps, &d.RolledBack[i])
	}
	return laps
}

// of is the lap of an attempt at a unit that locate has found.
func (d *transition) of(u AuditTarget) *RoundState {
	for i := range d.RolledBack {
		if l := &d.RolledBack[i]; l.has(u.ID()) {
			return l
		}
	}
	return d.lap(u.Round)
}

// finish releases the duties of members who left, and lets the phase follow the units.
func (d *transition) finish() (State, []Event) {
	d.unavailable()
	d.reassignDuties()
	d.syncPhase()
	return d.State, d.events
}

func (d *transition) emit(e Event) {
	e.Job = d.Terms.Job
	d.events = append(d.events, e)
}

// reassignDuties hands on what inactive members still had to do. In a run that just halted it only ends it. Disputes go
// on, and seals are to be opened: a party that leaves is not spared its verdict.
func (d *transition) reassignDuties() {
	out := d.inactive()
	if len(out) == 0 {
		return
	}
	d.releaseLooks(out)
	for i, u := range d.Units {
		if u.Status == Assigned && out[u.Worker] {
			d.reassign(i, d.gone(u.Worker, WhyWorkerLeft))
		}
	}
	for _, l := range d.all() {
		for i, u := range l.Units {
			if u.Status != Auditing && u.Status != Sealed || !out[u.Verifier] || d.Tolerant(*u) {
				continue
			}
			v, _ := d.Member(u.Verifier)
			if u.Status == Auditing || sealUnopenable(v) {
				d.unanswered(l, i, u.Verifier, d.gone(u.Verifier, WhyVerifierLeft))
				d.audit(l, i)
			}
		}
	}
}

// inactive are the members who have no duties: they left, or are on trial. Guests have those that were drawn for them.
func (d *transition) inactive() map[string]bool {
	var out map[string]bool
	for i := range d.Members {
		if m := &d.Members[i]; !m.Active && !m.guest() {
			if out == nil {
				out = map[string]bool{}
			}
			out[m.ID] = true
		}
	}
	return out
}

// gone is why a duty of an inactive member moves on: because it left the run in good standing, or as given.
func (d *transition) gone(id, otherwise string) string {
	if m, _ := d.Member(id); m.Why == WhyLeft {
		return WhyLeft
	}
	return otherwise
}

// syncPhase sets the phase that the units are in: there are commitments to come, or there are none, and then their
// audits can be drawn.
func (d *transition) syncPhase() {
	open := d.trains()
	switch {
	case d.Phase == Train && !open:
		d.Closed = d.env.Height
		d.enter(Attest)
		if _, diverged := d.Diverged(); d.Terms.Sliced() && !diverged {
			d.enter(Reduce)
		}
		if d.ahead() { // members may have attested before
			d.tally()
		}
	case (d.Phase == Attest || d.Phase == Reduce) && open:
		d.reopen()
	}
}

// trains reports whether a unit of the current round has no commitment.
func (d *transition) trains() bool {
	return slices.ContainsFunc(d.Units, func(u *Unit) bool { return u.Status == Assigned })
}

// reopen goes back to training: draws, slices and votes start over when every unit is committed again.
func (d *transition) reopen() {
	d.Closed, d.Drawn, d.Attested, d.Votes, d.Slices = 0, false, 0, nil, nil
	d.enter(Train)
}

func (d *transition) enter(p Phase) { d.Phase, d.Since = p, d.env.Height }

func (d *transition) halt(why string) {
	d.enter(Halted)
	d.Why = why
	for _, l := range d.all() {
		d.returned(*l, WhyHalted)
	}
	d.emit(Event{Kind: RunHalted, Round: d.Round, Why: why})
}

func (d *transition) halted() bool { return d.Phase == Halted }

func (c Crew) active(id string) bool {
	i, ok := c.member(id)
	return ok && c.Members[i].Active
}

// change changes one member, if it is one.
func (d *transition) change(id string, f func(*Member)) {
	if i, ok := d.member(id); ok {
		f(&d.Members[i])
	}
}

// leave makes a member inactive, or ends its trial. Its duties are released when the draft is done.
func (d *transition) leave(id, why string) {
	if m, _ := d.Member(id); !m.participating() && !m.guest() {
		return
	}
	d.Probations = slices.DeleteFunc(d.Probations, func(t Probation) bool { return t.Member == id })
	d.change(id, func(m *Member) { m.Active, m.Why, m.Since = false, why, d.env.Height })
	d.emit(Event{Kind: MemberLeft, Round: d.Round, Who: id, Why: why})
}

// recordMiss counts a missed deadline of a member, and lets it go when patience ends.
func (d *transition) recordMiss(id, why string) {
	d.change(id, func(m *Member) { m.Missed++ })
	m, _ := d.Member(id)
	if m.guest() { // nobody waits for it, and others are drawn
		return
	}
	if m.Missed >= lastPatience || m.Missed >= patience && len(d.Active(m.Role)) > 1 {
		d.leave(id, why)
	}
}

// accept says that nothing is open about a unit.
func (d *transition) accept(l *RoundState, i int) {
	u := d.unit(l, i)
	u.Status = Accepted
	d.emit(Event{Kind: UnitAccepted, Round: l.Round, Unit: u.Index, Who: u.Worker})
	if l == &d.RoundState {
		d.withheld(i)
	}
}

// reassign gives a unit of the current round to another worker. Once an audit of a unit is drawn, all its later
// attempts are audited.
func (d *transition) reassign(i int, why string) {
	if d.halted() {
		return
	}
	old := *d.Units[i]
	exact := why == WhyOdd || why == WhyOutside || why == WhyDistrusted
	next := Unit{
		Index:      old.Index,
		Status:     Assigned,
		Attempt:    max(old.last()+1, d.FirstAttempt),
		AssignedAt: d.env.Height,
		Audited:    old.Audited || why == WhyVerdict || why == WhySilent || why == WhyConvicted || exact,
		Exact:      old.Exact || exact,
		Held:       old.Held,
		Looked:     old.Looked || old.Passed,
		Refused:    old.Refused,
	}
	if !slices.Contains(next.Refused, old.Worker) {
		next.Refused = append(slices.Clip(next.Refused), old.Worker)
	}
	switch {
	case old.Status == Assigned:
		next.PreviousAssignees = former(append(slices.Clip(old.PreviousAssignees), old.holder()))
	case why == WhyUnavailable && !d.Tolerant(old):
		// who committed it first may have copied the commitment of who was late, without the bytes
		next.PreviousAssignees = slices.DeleteFunc(
			slices.Clone(old.PreviousAssignees),
			func(h PreviousAssignee) bool { return h.Worker == old.Worker },
		)
	}
	now := d.unit(&d.RoundState, i)
	*now = next // nobody's while open units are counted
	next.Worker = d.substitute(old, next)
	next.Deadline = d.owed(next.Worker, next.Index, d.env.Height)
	if next.Worker == old.Worker && old.Status == Assigned { // nobody else has less to do: it has more time
		old.Deadline = next.Deadline
		*now = old
		return
	}
	*now = next
	d.questionOrigin(i)
	d.emit(Event{Kind: UnitReassigned, Round: d.Round, Unit: next.Index, Who: old.Worker, Other: next.Worker, Why: why})
	if next.Worker == "" {
		d.halt(WhyNoWorkers)
	}
}

// substitute draws who gets a unit: of those who have not failed it, or else of all, one with the fewest open units,
// those that it is late with among them; where units have different sizes, one that is done first. Who is late keeps
// the unit unless another has less to do: it is at work, and the other is not.
func (d *transition) substitute(old, u Unit) string {
	all, ending := d.Active(Worker), d.ending(u.Index)
	fresh := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return slices.Contains(u.Refused, id) })
	keeps := old.Status == Assigned && d.active(old.Worker)
	for _, pool := range [][]string{fresh, all} {
		if len(pool) == 0 {
			continue
		}
		first := ending(slices.MinFunc(pool, func(a, b string) int { return cmp.Compare(ending(a), ending(b)) }))
		if keeps && first >= ending(old.Worker) {
			continue
		}
		pool = slices.DeleteFunc(pool, func(id string) bool { return ending(id) > first })
		return pool[d.pick("substitute", d.Round, u, len(pool))]
	}
	if keeps {
		return old.Worker
	}
	return ""
}

// load counts the segments of open units of the round that workers have or are late with.
func (d *transition) load() map[string]uint64 {
	open := make(map[string]uint64)
	for _, u := range d.Units {
		if u.Status != Assigned {
			continue
		}
		size := uint64(d.Terms.SegmentsOf(u.Index))
		open[u.Worker] += size
		for _, h := range u.PreviousAssignees {
			open[h.Worker] += size
		}
	}
	return open
}

func (d *transition) pick(purpose string, round uint32, u Unit, n int) int {
	return audit.Pick(d.env.Beacon, purpose, d.Terms.Job, round, u.Index, u.Attempt, n)
}

// admit finds the attempt at a unit that a message of a member is about, and checks that all are still there.
func (s State) admit(from string, id UnitID) (Unit, error) {
	if err := s.sender(from); err != nil {
		return Unit{}, err
	}
	return s.find(id)
}

// answers finds the attempt that an answer of a member is about. Also a round that was rolled back is answered for.
func (s State) answers(from string, id UnitID) (AuditTarget, error) {
	if err := s.sender(from); err != nil && (s.over() || !s.Guest(from)) {
		return AuditTarget{}, err
	}
	return s.locate(id)
}

func (s State) find(id UnitID) (Unit, error) {
	l, ok := s.At(id.Round)
	switch {
	case !ok:
		return Unit{}, fmt.Errorf("%w: round %d, the run is in round %d", ErrStale, id.Round, s.Round)
	case len(l.Units) == 0:
		return Unit{}, fmt.Errorf("%w: the units of round %d are not dealt yet", ErrWrongPhase, id.Round)
	case uint64(id.Unit) >= uint64(len(l.Units)):
		return Unit{}, fmt.Errorf("%w: unit %d, the round has %d", ErrNoUnit, id.Unit, len(l.Units))
	case id.Attempt != l.Units[id.Unit].Attempt:
		return Unit{}, fmt.Errorf("%w: attempt %d of unit %d, it is at attempt %d", ErrStale, id.Attempt, id.Unit,
			l.Units[id.Unit].Attempt)
	}
	return *l.Units[id.Unit], nil
}

// locate finds an attempt at a unit as find does, and also in the rounds that were rolled back.
func (s State) locate(id UnitID) (AuditTarget, error) {
	for _, l := range s.RolledBack {
		if l.has(id) {
			return AuditTarget{l, *l.Units[id.Unit]}, nil
		}
	}
	u, err := s.find(id)
	l, _ := s.At(id.Round)
	return AuditTarget{l, u}, err
}

func (l RoundState) has(id UnitID) bool {
	return l.Round == id.Round && uint64(id.Unit) < uint64(len(l.Units)) && l.Units[id.Unit].Attempt == id.Attempt
}

func (s State) sender(from string) error {
	m, ok := s.Member(from)
	switch {
	case s.over():
		return fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	case !ok:
		return fmt.Errorf("%w: %s", ErrNotMember, from)
	case !m.Active:
		return fmt.Errorf("%w: %s (%s)", ErrInactive, from, m.Why)
	}
	return nil
}
