package assignment

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/work"
)

// In a run whose answers are drawn apart (terms.Rollout) a round begins with units that draw from its checkpoint, and
// with units that learn and have no worker. These get workers once everything that they read is committed, from that
// and no other round: so what a unit learns from is a function of the state of the run, and never older than the terms
// say.

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
	learns := func(id string) bool {
		return slices.ContainsFunc(d.Units, func(u *work.Unit) bool { return u.Worker == id })
	}
	if free := slices.DeleteFunc(slices.Clone(workers), learns); len(free) > 0 {
		workers = free
	}
	deal(d, int(d.Terms.Units), workers, shares(d, d.Terms.Rollout.Units, workers, drawing))
}

// deal gives units to workers in order, beginning with the unit of a number. shares is the number of units of each
// worker.
func deal(d *Assignment, unit int, workers []string, shares []uint32) {
	for turn, n := range shares {
		for range n {
			d.give(unit, workers[turn])
			unit++
		}
	}
}

// shares is how many of a number of units each worker gets, by speed. One whose speed is not measured counts as the
// mean. Workers without a share do the units of the other kind, so none is measured again for its own sake.
func shares(d *Assignment, units uint32, workers []string, speed func(m crew.Member) uint32) []uint32 {
	blocks, usual := make([]uint32, len(workers)), d.usualSpeed(workers, speed)
	for i, id := range workers {
		m, _ := d.Member(id)
		blocks[i] = cmp.Or(speed(m), usual)
	}
	return schedule.SplitBySpeed(units, blocks)
}

// Feed gives workers to the units that learn, once all that they read is committed.
func (d *Assignment) Feed() {
	waits := slices.ContainsFunc(d.Units, func(u *work.Unit) bool { return u.Waits() })
	if !waits || d.Env.Beacon.IsZero() || d.Halted() {
		return
	}
	from, ok := d.Given()
	if workers := d.Shuffled(d.Active(crew.Worker)); ok && len(workers) > 0 {
		d.From = from
		deal(d, 0, workers, shares(d, d.Terms.Units, workers, learning))
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
		lo, hi := d.Terms.DrawnFor(unit)
		for _, u := range l.Units[lo:hi] {
			if u.Status == 0 || u.Status == work.Assigned {
				return nil, false
			}
			drawn = append(drawn, u.Commit.HandedState.Root)
		}
		from = append(from, work.HandedState{Root: canon.NewTree(drawn).Root()})
	}
	return from, true
}
