package assignment

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/work"
)

// In a run whose answers are drawn apart (terms.Rollout) a round begins with units that draw from its checkpoint, and
// with units that learn and have no worker. These get workers once everything that they read is committed, from that
// and no other round: so what a unit learns from is a function of the state of the run, and never older than the terms
// say.

// A round ends when its units that learn are committed, and units that draw have time until a later round reads them.
// So a unit that learns goes to the worker that would commit it first, and a unit that draws to the worker that would
// commit it first after its units that learn.

// trialPart is the part of a run in whose rounds units that learn go to workers whose speed at them is not known,
// before others: the first eighth. Later such a worker counts as its speed at drawing says.
const trialPart = 8

// idlePart is the part of its time for a unit that draws by which a worker counts as faster after a round without a
// unit, so that it is eventually measured again.
const idlePart = 32

// dealApart deals the units of a round that begins.
func (d *Assignment) dealApart(workers []string) {
	for i := range d.Terms.Units {
		d.Units = append(d.Units, &work.Unit{Index: i, Attempt: d.FirstAttempt, Status: work.Assigned})
	}
	if d.Terms.Draws(d.Round) {
		for i := range d.Terms.Rollout.Units {
			d.Units = append(d.Units, &work.Unit{Index: d.Terms.Units + i, Attempt: d.FirstAttempt, Draws: true})
		}
	}
	d.Feed()
	if !d.Terms.Draws(d.Round) {
		return
	}
	p := d.plan()
	if d.Units[0].Waits() && d.Terms.Policy(d.Round) != d.Round {
		p.deal(workers, 0, d.Terms.Units, func(int, string) {}) // those workers learn soon, and draw last
	}
	p.deal(workers, d.Terms.Units, d.Terms.Rollout.Units, p.give)
	works := map[string]bool{}
	for _, u := range d.Units {
		works[u.Worker] = true
	}
	for _, id := range workers {
		if !works[id] { // it may be faster by now, and draws again after some rounds
			d.Change(id, func(m *crew.Member) { m.DrawSpeed -= m.DrawSpeed / idlePart })
		}
	}
}

// Feed gives workers to the units that learn, once all that they read is committed. Without workers the run ends.
func (d *Assignment) Feed() {
	waits := slices.ContainsFunc(d.Units, func(u *work.Unit) bool { return u.Waits() })
	if !waits || d.Env.Beacon.IsZero() || d.Halted() {
		return
	}
	workers := d.Shuffled(crew.Learners(d.Crew))
	if len(workers) == 0 {
		d.Halt(reason.NoWorkers)
		return
	}
	if from, ok := d.Given(); ok {
		d.From = from
		p := d.plan()
		p.deal(workers, 0, d.Terms.Units, p.give)
	}
}

// Given is what the units of the current round learn from: of each, a root over what the units that draw for it have
// passed on. false: one of those is not committed.
func (d *Assignment) Given() (from []work.HandedState, ok bool) {
	l, ok := d.Answers(d.Terms.Policy(d.Round))
	if !ok || len(l.Units) <= int(d.Terms.Units) {
		return nil, false
	}
	for unit := range d.Terms.Units {
		var drawn []canon.Digest
		for _, k := range d.Terms.DrawnFor(unit) {
			u := l.Units[k]
			if u.Status == 0 || u.Status == work.Assigned {
				return nil, false
			}
			drawn = append(drawn, u.Commit.HandedState.Root)
		}
		from = append(from, work.HandedState{Root: canon.NewTree(drawn).Root()})
	}
	return from, true
}
