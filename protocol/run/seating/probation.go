package seating

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/audit"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// probationFactor is the number of deadlines of a unit that a probation task may take: the member must first fetch a
// checkpoint. Each further task gives it twice the time.
const probationFactor = 4

func (d *Seats) Join(m crew.Member) {
	i, known := d.Index(m.ID)
	if !known {
		d.Members = slices.Insert(d.Members, i, crew.Member{ID: m.ID, Role: m.Role, Passed: m.Passed})
	}
	e := &d.Members[i]
	if e.Why == reason.Returning {
		e.Returns++
		e.Missed = max(e.Missed, transition.MaxMissed) - 1 // the next missed deadline is one too many again
	} else {
		e.Price, e.Missed = m.Price, 0
	}
	e.Active, e.Why, e.Silent, e.Since = false, reason.OnProbation, 0, d.Env.Height
	e.Stake, e.Owner, e.Earning, e.Generates = m.Stake, m.OwnerID(), m.Earning, m.Generates
	// rounds of stages have corrected the rate of one that comes back
	found := d.Rules >= progress.StagesBySpeed && len(d.Terms.Pipeline.Flops) > 0 && e.Rate > 0
	if d.Rules >= progress.RatesCount && !found {
		e.Rate = m.Rate
	}
	if d.Terms.Tolerance.DistancePPM > 0 && d.Terms.AuditPPM == 0 {
		d.Emit(event.Event{Kind: event.MemberJoined, Round: d.Round, Who: m.ID})
		d.Admit(m.ID)
		return
	}
	d.Probations = append(d.Probations, progress.Probation{Member: m.ID})
	slices.SortFunc(d.Probations, func(a, b progress.Probation) int { return cmp.Compare(a.Member, b.Member) })
	d.Emit(event.Event{Kind: event.MemberJoined, Round: d.Round, Who: m.ID})
}

// StoreProbation stores the next step of a probation, or excludes the member if it has no task left to try.
func (d *Seats) StoreProbation(t progress.Probation) {
	if t.Task.Worker == "" && t.Tries >= transition.MaxMissed {
		d.Leave(t.Member, reason.Unproven)
		return
	}
	d.Probations[slices.IndexFunc(d.Probations, func(u progress.Probation) bool { return u.Member == t.Member })] = t
}

// CancelProbations takes back probation tasks that a verdict made void.
func (d *Seats) CancelProbations(void func(progress.ProbationTask) bool) {
	for i := range d.Probations {
		if t := &d.Probations[i]; t.Task.Worker != "" && void(t.Task) {
			*t = progress.Probation{Member: t.Member, Tries: t.Tries - 1}
		}
	}
}

// Admit makes a member active.
func (d *Seats) Admit(id string) {
	d.Change(id, func(m *crew.Member) { m.Active, m.Why, m.Since = true, "", d.Env.Height })
	d.Emit(event.Event{Kind: event.MemberProven, Round: d.Round, Who: id})
	d.dropIdle(id)
}

// dropIdle excludes the member that was kept only because it was the last of its role. A generator takes the place of
// no worker that learns.
func (d *Seats) dropIdle(by string) {
	m, _ := d.Member(by)
	for _, id := range d.Active(m.Role) {
		old, _ := d.Member(id)
		if id != by && old.Missed >= transition.MaxMissed && (!m.Generates || old.Generates) {
			d.Leave(id, map[crew.Role]string{crew.Worker: reason.MissedDeadlines, crew.Verifier: reason.MissedAudits}[m.Role])
		}
	}
}

// MoveProbations gives tasks, draws where their seals must be opened, and ends probations whose answer is late.
func (d *Seats) MoveProbations() {
	if d.Env.Beacon.IsZero() {
		return
	}
	for _, t := range slices.Clone(d.Probations) {
		switch {
		case t.Task.Worker == "":
			d.examine(&t)
		case !t.Seal.IsZero() && t.Question.IsZero() && d.Env.Height > t.Asked:
			t.Question = audit.Question(d.Env.Beacon, d.ProbationSubject(t))
			t.Deadline = d.Env.Height + transition.OpeningDeadlines*d.TrainDeadline()
		case t.Deadline == 0 || d.Env.Height <= t.Deadline:
			continue
		case !t.Seal.IsZero(): // it did not hold what it sealed
			d.Leave(t.Member, reason.Unproven)
			continue
		default:
			t.Task = progress.ProbationTask{}
		}
		d.StoreProbation(t)
	}
}

// examine gives a member on probation the latest unit available: one with nothing open, or, in the first rounds of a
// run, one that is being audited.
func (d *Seats) examine(t *progress.Probation) {
	rounds := d.EditRounds()
	slices.Reverse(rounds)
	task := progress.ProbationTask{}
	for _, settled := range []bool{true, false} {
		for _, l := range rounds {
			if task.Worker == "" {
				task = d.Example(*l, settled, t.Member)
			}
		}
		if task.Worker == "" {
			task = d.LatestFinal
		}
	}
	if task.Worker == "" {
		return
	}
	*t = progress.Probation{Member: t.Member, Tries: t.Tries + 1, Task: task, Asked: d.Env.Height}
	t.Deadline = d.Env.Height + probationFactor*d.TrainDeadline()<<(t.Tries-1)
}

// Example picks a unit of a round whose audits are drawn: one that passed its audit, or else one that is accepted, or
// else, unless it must be settled, one that is being audited. It picks none that starts from a carried state: carried
// states are known while their round is open, and a probation may outlast it. It prefers a unit of another owner than
// that of a member: machines of one owner know each other's results.
func (d *Seats) Example(l work.RoundState, settled bool, member string) progress.ProbationTask {
	carried := len(l.From) > 0 && d.Terms.Led == 0
	if apart := d.Terms.Rollout.Units > 0; apart && !l.Sampled || !apart && (!l.Drawn || carried) {
		return progress.ProbationTask{}
	}
	var pool []work.Unit
	for _, fits := range []func(work.Unit) bool{
		func(u work.Unit) bool { return u.Status == work.Accepted && u.Passed },
		func(u work.Unit) bool { return u.Status == work.Accepted },
		func(u work.Unit) bool { return !settled && (u.Status == work.Auditing || u.Status == work.Sealed) },
	} {
		if len(pool) == 0 {
			pool = l.Where(func(u work.Unit) bool {
				return fits(u) && u.Draws == (d.Terms.Rollout.Units > 0) && (!d.Tolerant(u) || !u.End.IsZero())
			})
		}
	}
	if len(pool) == 0 {
		return progress.ProbationTask{}
	}
	owner := func(id string) string { m, _ := d.Member(id); return m.OwnerID() }
	if others := slices.DeleteFunc(slices.Clone(pool),
		func(u work.Unit) bool { return owner(u.Worker) == owner(member) }); len(others) > 0 {
		pool = others
	}
	u := pool[d.Pick("exam", l.Round, work.Unit{}, len(pool))]
	if d.Tolerant(u) { // another machine need not reach the state that its worker committed to
		u.Commit = work.Commitment{Segments: []canon.Digest{u.End}}
	}
	return progress.ProbationTask{
		Round:   l.Round,
		Unit:    u.Index,
		Attempt: u.Attempt,
		Base:    l.Base,
		Worker:  u.Worker,
		Commit:  u.Commit,
	}
}
