package assignment

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// Unopened halts a run that nobody has worked in, if those who said that they cannot open its job have more than half
// of the weight of all who have a seat or said so. It is asked when a unit is late, or no worker is left: one
// honest worker that opens the job and commits in time keeps the run, whatever the others say.
func (d *Assignment) Unopened() {
	said := func(m crew.Member) bool { return m.Why == reason.Unopened }
	counts := func(m crew.Member) bool { return m.Active || said(m) }
	if !d.Halted() && !d.Opened() && crew.Above(d.WeighOf(counts, said), 2, d.WeighOf(counts, counts), 1) {
		d.Halt(reason.Unopened)
	}
}

// Withhold takes a unit of the current round from a worker, without proof and without a conviction. The next attempt at
// it is exact. With its deposit held the worker is out of the run.
func (d *Assignment) Withhold(i int, why string, held *work.Held) {
	worker := d.Units[i].Worker
	d.audits.CancelDisputes(&d.RoundState, i, why)
	d.Change(worker, func(m *crew.Member) { m.Passed = 0 })
	if held == nil {
		d.RecordMiss(worker, reason.Withheld)
	} else {
		d.Unit(&d.RoundState, i).Held = held
	}
	d.Reassign(i, why)
	if held != nil {
		d.distrust(worker)
	}
}

// distrust lets a worker go whose deposit is held or forfeited. All that it did in the round is done again exactly, and
// not paid: who fakes many units at once loses all of them with the first that is found.
func (d *Assignment) distrust(worker string) {
	if slices.ContainsFunc(d.Active(crew.Worker), func(id string) bool { return id != worker }) {
		d.Leave(worker, reason.Withheld)
	}
	for i, u := range d.Units {
		if u.Worker == worker && u.Status != work.Assigned && d.Tolerant(*u) {
			d.audits.CancelDisputes(&d.RoundState, i, reason.Distrusted)
			d.Reassign(i, reason.Distrusted)
		}
	}
}

// Turn gives a worker the whole time for its next unit. It begins now, unless it had it before that which it does no
// more: it may have been at it all the time, and is measured by that.
func (d *Assignment) Turn(worker string, before int64) {
	for i, u := range d.Units {
		if u.Status == work.Assigned && u.Worker == worker {
			u = d.Unit(&d.RoundState, i)
			if u.Deadline = d.Owed(worker, u.Index, d.Env.Height); u.AssignedAt >= before {
				u.AssignedAt = d.Env.Height
			}
		}
	}
}

// Withheld gives an accepted unit of the current round to another worker if more than half of the members other than
// its worker cannot fetch its update. One that is still to be audited waits for that: a verifier does not need the
// update, so a liar cannot escape its verdict by withholding what it committed to. Of tolerant work there is no
// verdict, and its verifier does need the update.
func (d *Assignment) Withheld(i int) {
	u := *d.Units[i]
	if !d.MostSay(u.Worker, u.Missing) {
		return
	}
	d.audits.CancelDisputes(&d.RoundState, i, reason.Unavailable)
	d.RecordMiss(u.Worker, reason.Unavailable)
	d.Reassign(i, reason.Unavailable)
	// Who could escape an audit so would fake every unit, and hide those that are drawn.
	if d.Tolerant(u) && u.Audited && !u.Passed && d.Terms.AuditPPM > 0 {
		d.Emit(event.Event{Kind: event.DepositForfeited, Round: d.Round, Unit: u.Index, Who: u.Worker,
			Why: reason.Unavailable})
		d.distrust(u.Worker)
	}
}

// Stuck reports whether the round cannot go on whoever is there: most members cannot fetch the update of a unit that is
// still to be audited, or in dispute. What is late until then is nobody's fault.
func (d *Assignment) Stuck() bool {
	return slices.ContainsFunc(d.Sent(),
		func(u *work.Unit) bool { return len(u.Missing) > 0 && d.MostSay(u.Worker, u.Missing) })
}
