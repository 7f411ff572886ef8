package schedule

import (
	"cmp"
	"math/bits"
	"slices"
)

const (
	// OneUnit is one unit, in the parts in which it is counted what workers are owed.
	OneUnit = 1 << 20
	// mostOwed bounds what a worker is owed, and owes, in units.
	mostOwed = 4
	// ahead is what a worker may owe, before a round, whose part of that round is rounded up
	ahead = OneUnit / 16
)

// Due is the part of a worker in the units of one round.
type Due struct {
	Shares []uint32 // number of units of each worker
	Owed   []int32  // what rounding has left to each worker, in 1/OneUnit unit; negative: it had more than its part
	Exact  []uint64 // part of each worker in the units, in 1/OneUnit unit, rounded down
}

// ShareBySpeed splits units over workers in proportion to their speed, so that over the rounds each gets its part.
// blocks[i] is the number of blocks that worker i needs for a unit, at least 1, and owed[i] is Due.Owed of the round
// before, 0 at first. A worker gets its part rounded down or up, and is owed the difference in later rounds.
//
// The parts of workers that are owed a whole unit are rounded up first. Of the others that are not ahead, those are
// chosen with which the round is as short as it can be, and among these the slowest, since later rounds then need not
// wait for them. In a tie it is the first of the workers.
func ShareBySpeed(units uint32, blocks []uint32, owed []int32) Due {
	s := sharing{blocks: blocks, due: make([]int64, len(blocks)), broken: make([]bool, len(blocks)),
		Due: Due{make([]uint32, len(blocks)), make([]int32, len(blocks)), make([]uint64, len(blocks))}}
	weights, total := speeds(blocks)
	left := units
	for i, w := range weights {
		high, low := bits.Mul64(uint64(units), w)
		whole, rest := bits.Div64(high, low, total)
		high, low = bits.Mul64(rest, OneUnit)
		part, _ := bits.Div64(high, low, total)
		s.Shares[i], s.broken[i] = uint32(whole), rest > 0
		s.Exact[i], s.due[i] = whole*OneUnit+part, int64(owed[i])+int64(part)
		left -= uint32(whole)
	}
	s.roundUp(int(left))
	for i, due := range s.due {
		s.Owed[i] = int32(max(-mostOwed*OneUnit, min(due, mostOwed*OneUnit)))
	}
	return s.Due
}

// speeds are the speeds of workers that need these blocks for a unit, and their sum: each is 2^40 over the blocks.
func speeds(blocks []uint32) (weights []uint64, total uint64) {
	const one = 1 << 40
	weights = make([]uint64, len(blocks))
	for i, n := range blocks {
		weights[i] = one / uint64(n)
		total += weights[i]
	}
	return weights, total
}

// sharing is a round whose parts are rounded down, while some are rounded up.
type sharing struct {
	Due
	blocks []uint32
	due    []int64 // what each worker is owed, in 1/OneUnit unit
	broken []bool  // its part is no whole number
}

// roundUp rounds n parts up.
func (s *sharing) roundUp(n int) {
	all := make([]int, 0, len(s.due))
	for i := range s.due {
		if s.broken[i] {
			all = append(all, i)
		}
	}
	var span uint64 // until the last worker has done its units
	for i := range s.due {
		span = max(span, uint64(s.Shares[i])*uint64(s.blocks[i]))
	}
	up := func(i int) bool {
		if n == 0 || !s.broken[i] {
			return false
		}
		s.Shares[i], s.due[i], s.broken[i] = s.Shares[i]+1, s.due[i]-OneUnit, false
		n--
		return true
	}
	after := func(i int) uint64 { return (uint64(s.Shares[i]) + 1) * uint64(s.blocks[i]) }
	byDue := func(a, b int) int { return cmp.Compare(s.due[b], s.due[a]) }
	slices.SortStableFunc(all, byDue) // from here on, all has those that are owed most first
	for _, i := range all {
		if took := after(i); s.due[i] >= OneUnit && up(i) {
			span = max(span, took)
		}
	}
	waiting := slices.DeleteFunc(slices.Clone(all), func(i int) bool { return !s.broken[i] || s.due[i] < -ahead })
	slices.SortStableFunc(waiting, func(a, b int) int { return cmp.Compare(after(a), after(b)) })
	if n > 0 && n <= len(waiting) {
		span = max(span, after(waiting[n-1]))
	}
	for len(waiting) > n && after(waiting[len(waiting)-1]) > span {
		waiting = waiting[:len(waiting)-1]
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return cmp.Or(cmp.Compare(after(b), after(a)), byDue(a, b)) })
	for _, i := range append(waiting, all...) {
		up(i)
	}
}
