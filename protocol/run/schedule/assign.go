package schedule

import (
	"cmp"
	"math/bits"
	"slices"
)

// SplitBySpeed splits units over workers in proportion to their speed, by the largest remainder; in a tie the first of
// the workers gets the unit. blocks[i] is the number of blocks that worker i needs for a unit, at least 1. It returns
// the number of units of each worker.
func SplitBySpeed(units uint32, blocks []uint32) []uint32 {
	weights, total := speeds(blocks)
	shares, rests := make([]uint32, len(blocks)), make([]uint64, len(blocks))
	left := units
	for i, w := range weights {
		high, low := bits.Mul64(uint64(units), w)
		whole, rest := bits.Div64(high, low, total)
		shares[i], rests[i] = uint32(whole), rest
		left -= uint32(whole)
	}
	byRest := make([]int, len(blocks))
	for i := range byRest {
		byRest[i] = i
	}
	slices.SortStableFunc(byRest, func(a, b int) int { return cmp.Compare(rests[b], rests[a]) })
	for _, i := range byRest[:left] {
		shares[i]++
	}
	return shares
}

// keeping bounds by how much a round may become longer so that units keep their workers: by a keeping-th part of it.
const keeping = 8

// AssignBySpeed deals units of these sizes: the largest first, each to the worker that would finish all its units
// earliest; in a tie to the first of them. blocks[i] is the number of blocks that worker i needs for a size of 1, at
// least 1. had[u] is the worker that holds the carried state of unit u, or -1; it keeps the unit unless that makes the
// round longer by more than an eighth. It returns the worker of each unit.
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
