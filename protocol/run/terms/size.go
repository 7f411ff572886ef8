package terms

import (
	"math"
	"math/bits"
	"slices"
)

// SegmentsOf is the number of segments of a unit: so many state roots does a commitment to it have after the first.
func (t Terms) SegmentsOf(unit uint32) uint32 {
	if t.IsDrawing(unit) {
		return 1
	}
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
	if t.IsDrawing(unit) {
		return t.Rollout.Flops
	}
	if n := len(t.Pipeline.Flops); n > 0 {
		return t.Pipeline.Flops[int(unit)%n]
	}
	if t.Sizes == nil {
		return t.UnitFlops
	}
	return t.UnitFlops / uint64(t.Segments) * uint64(t.SegmentsOf(unit))
}

// RoundFlops is the number of floating-point operations of all units of a round, at most the largest number.
func (t Terms) RoundFlops() uint64 {
	if len(t.Pipeline.Flops) > 0 {
		return t.Pipeline.roundFlops(t.Units)
	}
	each, n := t.UnitFlops, uint64(t.Units)
	if t.Sizes != nil {
		each, n = t.UnitFlops/uint64(t.Segments), 0
		for _, size := range t.Sizes {
			n += uint64(size)
		}
	}
	learn, draw := saturatingMul(each, n), saturatingMul(t.Rollout.Flops, uint64(t.Rollout.Units))
	if draw > math.MaxUint64-learn {
		return math.MaxUint64
	}
	return learn + draw
}

// Flops is the number of floating-point operations of all units, at most the largest number.
func (t Terms) Flops() uint64 { return saturatingMul(t.RoundFlops(), uint64(t.Rounds)) }

func saturatingMul(x, y uint64) uint64 {
	high, low := bits.Mul64(x, y)
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

// Whole scales the time of a unit to that of a whole unit, rounded up.
func (t Terms) Whole(unit uint32, took int64) int64 {
	if t.IsDrawing(unit) { // it is measured by itself
		return took
	}
	k, n := int64(t.SegmentsOf(unit)), int64(t.Segments)
	return (took*n + k - 1) / k
}

// Executed scales the time of an audit of a unit to the end of its drawn segment to that of an audit of a whole unit.
func (t Terms) Executed(unit, segment uint32, took int64) int64 {
	k, n := int64(segment), int64(t.Segments)
	if k == 0 || t.IsDrawing(unit) {
		return t.Whole(unit, took)
	}
	return (took*n + k - 1) / k
}

// Share is how many blocks a unit has of those that a whole one has: its share, and what even the smallest needs.
func (t Terms) Share(unit uint32, blocks int64) int64 {
	if t.IsDrawing(unit) {
		return blocks
	}
	k, n := int64(t.SegmentsOf(unit)), int64(t.Segments)
	return min(blocks, (blocks*k+n-1)/n+MinBlocks)
}
