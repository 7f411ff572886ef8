package run

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// Units of a round may have different sizes (Terms.Sizes), made for machines of different speeds: one that is a third
// as fast takes a third of the steps, and nobody waits for it. The sizes are the job's, so the model does not depend on
// who works; who is dealt which unit follows what was measured.

// SegmentsOf is the number of segments of a unit: so many state roots does a commitment to it have after the first.
func (t Terms) SegmentsOf(unit uint32) uint32 {
	if uint64(unit) >= uint64(len(t.Sizes)) {
		return t.Segments
	}
	return t.Sizes[unit]
}

// sized reports whether there is a size for every unit, counted in segments of equal operations, of which the largest
// has all.
func (t Terms) sized() bool {
	return len(t.Sizes) > 0 && len(t.Sizes) == int(t.Units) && slices.Min(t.Sizes) > 0 &&
		slices.Max(t.Sizes) == t.Segments && t.UnitFlops%uint64(t.Segments) == 0
}

// FlopsOf is the number of floating-point operations of a unit.
func (t Terms) FlopsOf(unit uint32) uint64 {
	if t.Sizes == nil {
		return t.UnitFlops
	}
	return t.UnitFlops / uint64(t.Segments) * uint64(t.SegmentsOf(unit))
}

// RoundFlops is the number of floating-point operations of all units of a round, at most the largest number.
func (t Terms) RoundFlops() uint64 {
	each, n := t.UnitFlops, uint64(t.Units)
	if t.Sizes != nil {
		each, n = t.UnitFlops/uint64(t.Segments), 0
		for _, size := range t.Sizes {
			n += uint64(size)
		}
	}
	high, low := bits.Mul64(each, n)
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

// whole is what a whole unit would take whose size a unit has not, if this took so long.
func (t Terms) whole(unit uint32, took int64) int64 {
	k, n := int64(t.SegmentsOf(unit)), int64(t.Segments)
	return (took*n + k - 1) / k
}

// executed is what an audit of a whole unit would take, if that of a unit to the end of its drawn segment took so long.
func (t Terms) executed(u Unit, took int64) int64 {
	k, n := int64(u.Segment), int64(t.Segments)
	if k == 0 {
		return t.whole(u.Index, took)
	}
	return (took*n + k - 1) / k
}

// share is how many blocks a unit has of those that a whole one has: its share, and what even the smallest needs.
func (t Terms) share(unit uint32, blocks int64) int64 {
	k, n := int64(t.SegmentsOf(unit)), int64(t.Segments)
	return min(blocks, (blocks*k+n-1)/n+floor)
}

// fitted deals units of different sizes by Fit. Who did a unit in the round before, and has the state that it handed
// on, keeps it if that fits.
func (d *transition) fitted(workers []string) []string {
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
func (d *transition) ending(unit uint32) func(id string) uint64 {
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
