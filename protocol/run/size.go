package run

import (
	"cmp"
	"slices"
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
		holders = AssignBySpeed(d.Terms.Sizes, blocks, had)
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

// keeping is the part of the time of a round that may be lost because units stay where they are.
const keeping = 8

// AssignBySpeed deals units of these sizes to workers: the largest first, each to the worker who is done with all it
// has then before the others would be; a tie goes to who comes first. blocks is what a size of 1 takes each of them, in
// any unit, at least 1. had is the worker who has what each unit goes on from, or -1; it keeps the unit unless that
// makes the round longer by more than an eighth. Fit returns the worker of each unit.
func AssignBySpeed(sizes, blocks []uint32, had []int) []int {
	order := make([]int, len(sizes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	fill := func(limit uint64) (holders []int, span uint64) {
		holders, load := make([]int, len(sizes)), make([]uint64, len(blocks))
		for _, unit := range order {
			done := func(w int) uint64 { return (load[w] + uint64(sizes[unit])) * uint64(blocks[w]) }
			w := had[unit]
			if w < 0 || done(w) > limit {
				w = 0
				for other := range blocks {
					if done(other) < done(w) {
						w = other
					}
				}
			}
			span = max(span, done(w))
			holders[unit] = w
			load[w] += uint64(sizes[unit])
		}
		return holders, span
	}
	best, span := fill(0)
	limit := span + span/keeping
	if kept, spent := fill(limit); spent <= limit {
		return kept
	}
	return best
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
