package run

import (
	"cmp"

	"github.com/starling-network/starling/protocol/run/schedule"
)

// Units of a round may have different sizes (Terms.Sizes), made for machines of different speeds: one that is a third
// as fast takes a third of the steps, and nobody waits for it. The sizes are the job's, so the model does not depend on
// who works; who is dealt which unit follows what was measured.

// fitted deals units of different sizes by Fit. Who did a unit in the round before, and has the state that it handed
// on, keeps it if that fits.
func (d *assignment) fitted(workers []string) []string {
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

// ending is when a worker would be done with a unit beside what it has: its open units and this one, times what one
// takes it. Where all units are whole, it is as fast as all others.
func (d *assignment) ending(unit uint32) func(id string) uint64 {
	open := d.load()
	if d.Terms.Sizes == nil {
		return func(id string) uint64 { return open[id] }
	}
	usual, size := d.usualSpeed(d.Active(Worker)), uint64(d.Terms.SegmentsOf(unit))
	return func(id string) uint64 {
		m, _ := d.Member(id)
		return (open[id] + size) * uint64(cmp.Or(m.Speed, usual))
	}
}
