package assignment

import (
	"cmp"
	"slices"

	"github.com/starling-network/starling/protocol/run/crew"
	"github.com/starling-network/starling/protocol/run/event"
	"github.com/starling-network/starling/protocol/run/progress"
	"github.com/starling-network/starling/protocol/run/reason"
	"github.com/starling-network/starling/protocol/run/schedule"
	"github.com/starling-network/starling/protocol/run/work"
)

// Deal assigns the units of the round, once there is a beacon and room in the window. The order of the workers follows
// the beacon, so no party can choose it; each worker gets units in proportion to its speed. A round that the escrow
// does not cover waits until earlier rounds are final and return what they did not spend; if none is open, the run
// ends. A cancelled run ends in the same way. While the consumer pauses the run, no round begins. A run that its
// consumer leads waits for the data of the round, and ends when they are not named in time.
func (d *Assignment) Deal() {
	switch {
	case d.Env.CancelRequested:
		if len(d.Open) == 0 {
			d.Halt(reason.Cancelled)
		}
		return
	case d.Env.Paused || d.Env.Beacon.IsZero() || len(d.Open) >= int(d.Terms.Window):
		return
	case d.Env.BudgetExhausted:
		if len(d.Open) == 0 {
			d.Halt(reason.BudgetExhausted)
		}
		return
	}
	if d.Terms.Led > 0 && len(d.From) == 0 {
		wait(d)
		return
	}
	workers := d.Shuffled(d.Active(crew.Worker))
	if len(crew.Learners(d.Crew)) == 0 {
		d.Halt(reason.NoWorkers)
		return
	}
	d.Enter(progress.Train)
	if d.Terms.Rollout.Units > 0 {
		d.dealApart(workers)
		return
	}
	if staged(d) {
		dealStages(d, workers)
		return
	}
	owners := d.equal
	if d.Terms.Sizes != nil {
		owners = d.fitted
	}
	for i, worker := range owners(workers) {
		d.Units = append(d.Units, &work.Unit{Index: uint32(i), Attempt: d.FirstAttempt})
		d.give(i, worker)
	}
}

// give gives a unit of the current round to its first worker.
func (d *Assignment) give(i int, worker string) {
	u := d.Unit(&d.RoundState, i)
	u.Status, u.Worker, u.AssignedAt = work.Assigned, worker, d.Env.Height
	u.Deadline = d.Owed(u.Worker, u.Index, d.Env.Height)
	d.Emit(event.Event{Kind: event.UnitAssigned, Round: d.Round, Unit: u.Index, Who: u.Worker})
}

// equal deals units of one size: each worker gets its share, and first the units that it did in the round before.
func (d *Assignment) equal(workers []string) []string {
	var mine []uint32
	if d.Rules >= progress.RoundingIsOwed {
		mine = shares(d, workers)
	} else {
		mine = d.measured(workers, func(blocks []uint32) []uint32 { return schedule.SplitBySpeed(d.Terms.Units, blocks) })
	}
	owners := make([]string, d.Terms.Units)
	for i, k := range d.had(workers) {
		if k >= 0 && mine[k] > 0 {
			mine[k]--
			owners[i] = workers[k]
		}
	}
	turn := 0
	for i := range owners {
		if owners[i] != "" {
			continue
		}
		for mine[turn] == 0 {
			turn = (turn + 1) % len(workers)
		}
		mine[turn]--
		owners[i], turn = workers[turn], (turn+1)%len(workers)
	}
	return owners
}

// measured splits the units of a round over workers by speed, each round by itself: where units differ in size, and in
// runs of rules before progress.RoundingIsOwed. It returns how many each gets. A worker without a measured speed
// counts as its rate says (expected), or else as the mean of the others. If that gives it no unit, it gets one before
// all others, which measures it.
// A measured worker that gets no unit counts as twice as fast the next time, so that it is eventually measured again.
func (d *Assignment) measured(workers []string, split func(blocks []uint32) (shares []uint32)) []uint32 {
	blocks := expected(d, workers)
	usual := mean(blocks)
	var novices []int
	for i, id := range workers {
		if m, _ := d.Member(id); m.Speed == 0 {
			blocks[i], novices = cmp.Or(blocks[i], usual), append(novices, i)
		}
	}
	shares := split(blocks)
	if slices.ContainsFunc(novices, func(i int) bool { return shares[i] == 0 }) {
		first := max(1, slices.Min(blocks)-1)
		for _, i := range novices {
			blocks[i] = first
		}
		shares = split(blocks)
	}
	for i, id := range workers {
		if shares[i] == 0 {
			d.Change(id, func(m *crew.Member) { m.Speed /= 2 })
		}
	}
	return shares
}

// usualSpeed is the mean of the measured speeds, or an arbitrary speed if none is measured.
func (d *Assignment) usualSpeed(workers []string) uint32 {
	blocks := make([]uint32, len(workers))
	for i, id := range workers {
		m, _ := d.Member(id)
		blocks[i] = m.Speed
	}
	return mean(blocks)
}

// Units of a round may have different sizes (Terms.Sizes), for machines of different speeds: a worker a third as fast
// takes a third of the steps, so the others do not wait for it. The sizes are part of the job, so the model does
// not depend on the workers; which worker gets which unit follows the measured speeds.

// fitted deals units of different sizes by AssignBySpeed. The worker that did a unit in the round before, and so has
// the state that the unit carried over, keeps it if that fits.
func (d *Assignment) fitted(workers []string) []string {
	var holders []int
	had := d.had(workers)
	d.measured(workers, func(blocks []uint32) []uint32 {
		holders = schedule.AssignBySpeed(d.Terms.Sizes, blocks, had)
		shares := make([]uint32, len(workers))
		for _, w := range holders {
			shares[w]++
		}
		return shares
	})
	owners := make([]string, len(holders))
	for i, w := range holders {
		owners[i] = workers[w]
	}
	return owners
}

// ending returns a function that ranks workers by when each would finish the unit: the segments of its open units and
// this one, times its blocks per unit. Where all units are whole, only its open segments count.
func (n *open) ending(d *Assignment, unit uint32) func(id string) uint64 {
	if d.Terms.Sizes == nil {
		return func(id string) uint64 { return n.segments[id] }
	}
	usual, size := d.usualSpeed(d.Active(crew.Worker)), uint64(d.Terms.SegmentsOf(unit))
	return func(id string) uint64 {
		m, _ := d.Member(id)
		return (n.segments[id] + size) * uint64(cmp.Or(m.Speed, usual))
	}
}
