package run

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
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
	Round   uint32     `cbor:"1,keyasint"`
	Unit    uint32     `cbor:"2,keyasint"`
	Attempt uint32     `cbor:"3,keyasint"`
	Base    Checkpoint `cbor:"4,keyasint"` // what the round starts from
	Worker  string     `cbor:"5,keyasint"` // who committed
	Commit  Commitment `cbor:"6,keyasint"`
}

// ID names the attempt that is executed again.
func (e ProbationTask) ID() UnitID { return UnitID{Round: e.Round, Unit: e.Unit, Attempt: e.Attempt} }

func (e ProbationTask) is(id UnitID) bool {
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

// examPatience is how many deadlines of a unit a member has for an exam: it must first fetch a checkpoint. Each further
// exam gives it twice the time.
const examPatience = 4

// participating reports whether a member takes part: it is active, or on trial.
func (m Member) participating() bool { return m.Active || m.Why == WhyOnProbation }

// owner is the account that a member works for.
func (m Member) owner() string { return cmp.Or(m.Owner, m.ID) }

// Present counts the members of a role that are active or on trial.
func (c Crew) Present(r Role) uint32 {
	n := uint32(0)
	for _, m := range c.Members {
		if m.Role == r && m.participating() {
			n++
		}
	}
	return n
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
func (p Progress) MayJoin(id string, r Role) bool {
	m, ok := p.Member(id)
	switch {
	case p.over():
		return false
	case !ok:
		return len(p.Members) < MaxMembers
	}
	return m.Role == r && !m.Active && (m.Why == WhyReturning || (m.Why == WhyLeft || m.guest()) && !p.Liable(id))
}

// Join takes members in while the run goes on, whom the market has matched: each begins a trial. Only ID, Role, Price,
// Passed, Stake and Owner of the members are taken, and Passed of who was no member before.
func (s State) Join(env Env, members []Member) (State, []Event, error) {
	d := s.edit(env)
	for _, m := range members {
		if m.ID == "" || len(m.ID) > MaxID || (m.Role != Worker && m.Role != Verifier) || !d.MayJoin(m.ID, m.Role) {
			return s, nil, fmt.Errorf("%w: %q cannot join in role %d", ErrTerms, m.ID, m.Role)
		}
		d.join(m)
	}
	after, events := d.finish()
	return after, events, nil
}

func (d *seats) join(m Member) {
	i, known := d.member(m.ID)
	if !known {
		d.Members = slices.Insert(d.Members, i, Member{ID: m.ID, Role: m.Role, Passed: m.Passed})
	}
	e := &d.Members[i]
	if e.Why == WhyReturning {
		e.Returns++
		e.Missed = max(e.Missed, patience) - 1 // the next missed deadline is one too many again
	} else {
		e.Price, e.Missed = m.Price, 0
	}
	e.Active, e.Why, e.Silent, e.Since = false, WhyOnProbation, 0, d.env.Height
	e.Stake, e.Owner = m.Stake, m.owner()
	if d.Terms.Tolerance.DistancePPM > 0 && d.Terms.AuditPPM == 0 {
		d.emit(Event{Kind: MemberJoined, Round: d.Round, Who: m.ID})
		d.admit(m.ID)
		return
	}
	d.Probations = append(d.Probations, Probation{Member: m.ID})
	slices.SortFunc(d.Probations, func(a, b Probation) int { return cmp.Compare(a.Member, b.Member) })
	d.emit(Event{Kind: MemberJoined, Round: d.Round, Who: m.ID})
}

// Return says that a member which is out of the run over missed deadlines is back. It joins again when there is a
// place. Each time it must have rested twice as long as the time before.
func (s State) Return(env Env, from string) (State, []Event, error) {
	m, ok := s.Member(from)
	switch {
	case s.over() || !ok:
		return s, nil, sender(s, from)
	case m.participating() || m.Why == WhyReturning:
		return s, nil, fmt.Errorf("%w: %s takes part", ErrDuplicate, from)
	case !m.missing():
		return s, nil, fmt.Errorf("%w: %s is out for good (%s)", ErrInactive, from, m.Why)
	case !s.MayReturn(from, env.Height):
		return s, nil, fmt.Errorf("%w: %s may return from height %d", ErrWrongPhase, from, m.Since+s.rest(m))
	}
	d := s.edit(env)
	d.change(from, func(m *Member) { m.Why = WhyReturning })
	return d.State, nil, nil
}

// MayReturn reports whether Return would be accepted.
func (p Progress) MayReturn(id string, height int64) bool {
	m, ok := p.Member(id)
	return ok && !p.over() && m.missing() && height >= m.Since+p.rest(m)
}

func (p Progress) rest(m Member) int64 { return p.TrainDeadline() << min(m.Returns, 16) }

// missing reports whether a member is out because it was not there, which says nothing about its work.
func (m Member) missing() bool {
	switch m.Why {
	case WhyMissedDeadlines, WhyMissedAudits, WhyMissedAttest, WhyMissedSlices, WhyUnproven:
		return !m.Active
	}
	return false
}

// Removed reports whether a member is out of the run for good, or has left it.
func (p Progress) Removed(id string) bool {
	m, ok := p.Member(id)
	return p.over() || !ok || !m.participating() && m.Why != WhyReturning && !m.missing()
}

// SubmitProbation is the answer of a member on trial to its exam: the seal of the state that it reached, or none if
// that is not the committed one. Then it gets another exam: it may be the commitment that is wrong.
func (s State) SubmitProbation(env Env, from string, id UnitID, seal canon.Digest) (State, []Event, error) {
	t, ok := s.Probation(from)
	switch {
	case s.over():
		return s, nil, fmt.Errorf("%w: %s", ErrHalted, s.Terms.Job)
	case !ok:
		return s, nil, fmt.Errorf("%w: %s is not on trial", ErrNotYours, from)
	case !t.Task.is(id):
		return s, nil, fmt.Errorf("%w: the exam of %s is another", ErrStale, from)
	case !t.Seal.IsZero():
		return s, nil, fmt.Errorf("%w: %s has answered", ErrDuplicate, from)
	}
	d := s.edit(env)
	t.Seal, t.Asked, t.Deadline = seal, env.Height, 0
	if seal.IsZero() {
		t.Task = ProbationTask{}
	}
	d.goOn(t)
	after, events := d.finish()
	return after, events, nil
}

// goOn stores where a trial stands. Who has had all its exams is out.
func (d *seats) goOn(t Probation) {
	if t.Task.Worker == "" && t.Tries >= patience {
		d.leave(t.Member, WhyUnproven)
		return
	}
	d.Probations[slices.IndexFunc(d.Probations, func(u Probation) bool { return u.Member == t.Member })] = t
}

// cancelProbation takes exams back that a verdict made void.
func (d *seats) cancelProbation(void func(ProbationTask) bool) {
	for i := range d.Probations {
		if t := &d.Probations[i]; t.Task.Worker != "" && void(t.Task) {
			*t = Probation{Member: t.Member, Tries: t.Tries - 1}
		}
	}
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

// prove ends a trial: the member held the state that others committed to.
func prove(s State, env Env, t Probation, o audit.Opening, r audit.RootFuncs) (State, []Event, error) {
	if t.Question.IsZero() {
		return s, nil, fmt.Errorf("%w: no seal of %s waits to be opened", ErrWrongPhase, t.Member)
	}
	subject := s.ProbationSubject(t)
	if err := o.Check(subject, subject.End(t.Task.Commit.Segments), t.Seal, t.Question, r); err != nil {
		return s, nil, fmt.Errorf("%w: %w", ErrBadOpening, err)
	}
	d := s.edit(env)
	d.Probations = slices.DeleteFunc(d.Probations, func(u Probation) bool { return u.Member == t.Member })
	d.admit(t.Member)
	after, events := d.finish()
	return after, events, nil
}

// admit lets a member count.
func (d *seats) admit(id string) {
	d.change(id, func(m *Member) { m.Active, m.Why, m.Since = true, "", d.env.Height })
	d.emit(Event{Kind: MemberProven, Round: d.Round, Who: id})
	d.dropIdle(id)
}

// dropIdle lets the member go that was waited for only because it was the last of its role.
func (d *seats) dropIdle(by string) {
	m, _ := d.Member(by)
	for _, id := range d.Active(m.Role) {
		if old, _ := d.Member(id); id != by && old.Missed >= patience {
			d.leave(id, map[Role]string{Worker: WhyMissedDeadlines, Verifier: WhyMissedAudits}[m.Role])
		}
	}
}

// trials gives exams, draws where their seals must be opened, and ends the trials of those who do not answer.
func (d *seats) trials() {
	if d.env.Beacon.IsZero() {
		return
	}
	for _, t := range slices.Clone(d.Probations) {
		switch {
		case t.Task.Worker == "":
			d.examine(&t)
		case !t.Seal.IsZero() && t.Question.IsZero() && d.env.Height > t.Asked:
			t.Question = audit.Question(d.env.Beacon, d.ProbationSubject(t))
			t.Deadline = d.env.Height + openingPatience*d.TrainDeadline()
		case t.Deadline == 0 || d.env.Height <= t.Deadline:
			continue
		case !t.Seal.IsZero(): // it did not hold what it sealed
			d.leave(t.Member, WhyUnproven)
			continue
		default:
			t.Task = ProbationTask{}
		}
		d.goOn(t)
	}
}

// examine gives a member on trial the latest unit there is: one about which nothing is open, or, in the first rounds of
// a run, one that is being audited.
func (d *seats) examine(t *Probation) {
	laps := d.rounds()
	slices.Reverse(laps)
	exam := ProbationTask{}
	for _, settled := range []bool{true, false} {
		for _, l := range laps {
			if exam.Worker == "" {
				exam = d.example(*l, settled)
			}
		}
		if exam.Worker == "" {
			exam = d.LatestFinal
		}
	}
	if exam.Worker == "" {
		return
	}
	*t = Probation{Member: t.Member, Tries: t.Tries + 1, Task: exam, Asked: d.env.Height}
	t.Deadline = d.env.Height + examPatience*d.TrainDeadline()<<(t.Tries-1)
}

// example picks a unit of a round whose audits are drawn: one that passed its audit, or else one that is accepted, or
// else, unless it must be settled, one that is being audited. What is handed on to units is known while their round is
// open, and an exam may be about an earlier one: none is about a unit that starts from that.
func (d *seats) example(l RoundState, settled bool) ProbationTask {
	if !l.Drawn || len(l.From) > 0 {
		return ProbationTask{}
	}
	var pool []Unit
	for _, fits := range []func(Unit) bool{
		func(u Unit) bool { return u.Status == Accepted && u.Passed },
		func(u Unit) bool { return u.Status == Accepted },
		func(u Unit) bool { return !settled && (u.Status == Auditing || u.Status == Sealed) },
	} {
		if len(pool) == 0 {
			pool = l.units(func(u Unit) bool { return fits(u) && (!d.Tolerant(u) || !u.End.IsZero()) })
		}
	}
	if len(pool) == 0 {
		return ProbationTask{}
	}
	u := pool[d.pick("exam", l.Round, Unit{}, len(pool))]
	if d.Tolerant(u) { // what its worker committed to nobody else need reach
		u.Commit = Commitment{Segments: []canon.Digest{u.End}}
	}
	return ProbationTask{
		Round:   l.Round,
		Unit:    u.Index,
		Attempt: u.Attempt,
		Base:    l.Base,
		Worker:  u.Worker,
		Commit:  u.Commit,
	}
}
