package assignment

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/transition"
	"github.com/starling-network/starling/protocol/run/work"
)

// Unopened halts a run without any commitment, if the members that reported that they cannot open its job have more
// than half of the weight of all that have a seat or reported so. It is checked when a unit is late, or no worker is
// left: one honest worker that opens the job and commits in time keeps the run, whatever the others report.
func (d *Assignment) Unopened() {
	said := func(m crew.Member) bool { return m.Why == reason.Unopened }
	counts := func(m crew.Member) bool { return m.Active || said(m) }
	if !d.Halted() && !d.Opened() && crew.Above(d.WeighOf(counts, said), 2, d.WeighOf(counts, counts), 1) {
		d.Halt(reason.Unopened)
	}
}

// Withhold takes a unit of the current round from a worker, without proof and without a conviction. The next attempt at
// it is exact. If held is not nil, the worker's deposit is held and it leaves the run.
func (d *Assignment) Withhold(i int, why string, held *work.Held) {
	worker := d.Units[i].Worker
	d.audits.CancelDisputes(&d.RoundState, i, why)
	d.Change(worker, func(m *crew.Member) { m.Passed = 0 })
	if held == nil {
		d.RecordMiss(worker, reason.Withheld)
	} else {
		d.Unit(&d.RoundState, i).Held = held
	}
	d.Reassign(&d.RoundState, i, why)
	if held != nil {
		d.distrust(worker)
	}
}

// distrust excludes a worker whose deposit is held or forfeited. All its units of the round are executed again
// exactly, and not paid: a worker that fakes many units loses all of them with the first that is found.
func (d *Assignment) distrust(worker string) {
	if slices.ContainsFunc(d.Active(crew.Worker), func(id string) bool { return id != worker }) {
		d.Leave(worker, reason.Withheld)
	}
	for i, u := range d.Units {
		if u.Worker == worker && u.Status != work.Assigned && d.Tolerant(*u) {
			d.audits.CancelDisputes(&d.RoundState, i, reason.Distrusted)
			d.Reassign(&d.RoundState, i, reason.Distrusted)
		}
	}
}

// Turn gives a worker the whole time for its next unit. The time begins now, unless the worker had the next unit before
// the one that it just ended: it may have worked on it all the time, and is measured by that. Units that are stages are
// computed at the same time, from the begin of the round on.
func (d *Assignment) Turn(worker string, before int64) {
	held := transition.Holds(d.Draft, worker)[worker]
	together := staged(d) && d.Rules >= progress.StagesBySpeed
	for _, l := range d.EditRounds() {
		for i, u := range l.Units {
			if u.Status == work.Assigned && u.Worker == worker {
				u = d.Unit(l, i)
				u.Deadline = transition.OwedHolding(d.Draft, worker, u.Index, d.Env.Height, held)
				if u.AssignedAt >= before && !together {
					u.AssignedAt = d.Env.Height
				}
			}
		}
	}
}

// Withheld gives an accepted unit of the current round to another worker if more than half of the members other than
// its worker cannot fetch its update. If an audit of the unit is still open, this waits for it: a verifier of exact
// work does not need the update, so a cheating worker cannot escape the verdict by withholding the update. Tolerant
// work has no verdict, and its verifier does need the update.
func (d *Assignment) Withheld(i int) {
	if !staged(d) {
		withheld(d, i)
		return
	}
	for _, u := range d.Replica(d.Terms, uint32(i)) { // that of another may have waited for the audit of this one
		if u.Status == work.Accepted && mayRestart(d, u.Index) {
			withheld(d, int(u.Index))
		}
	}
}

// withheld gives one such unit to another worker.
func withheld(d *Assignment, i int) {
	u := *d.Units[i]
	if u.Draws || !d.MostSay(u.Worker, u.Missing) { // answers stand: see the message Missing
		return
	}
	d.audits.CancelDisputes(&d.RoundState, i, reason.Unavailable)
	d.RecordMiss(u.Worker, reason.Unavailable)
	d.Reassign(&d.RoundState, i, reason.Unavailable)
	// A worker that could escape audits so would fake every unit, and hide those that are drawn.
	if d.Tolerant(u) && u.Audited && !u.Passed && d.Terms.AuditPPM > 0 {
		d.Emit(event.Event{Kind: event.DepositForfeited, Round: d.Round, Unit: u.Index, Who: u.Worker,
			Why: reason.Unavailable})
		d.distrust(u.Worker)
	}
}

// Stuck reports whether the round cannot continue with any set of members: most cannot fetch the update of a unit whose
// audit or dispute is still open. Deadlines missed until it ends count against no member.
func (d *Assignment) Stuck() bool {
	return slices.ContainsFunc(d.Sent(),
		func(u *work.Unit) bool { return len(u.Missing) > 0 && d.MostSay(u.Worker, u.Missing) })
}
