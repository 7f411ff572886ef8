// Package schedule is the arithmetic of time in a run: how long a duty may take, of what was observed, and who gets
// which units, of how fast each worker is. It holds no state, and knows of no unit, member or round but their numbers.
package schedule

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/terms"
)

// The deadline of a duty follows what was observed: the median, plus four times the median absolute deviation, plus a
// quarter of the median and at least a floor: to wait for a machine that comes back from a fault costs less than to let
// another begin anew. Who has just missed one is given twice the time the next time, so that a slow machine is measured
// before patience with it ends, and a network that slows down as a whole does not lose all its members.
const (
	remembered = 32 // observations
	// Trusted is how many observations say enough; with fewer there is more time.
	Trusted = 8
	spread  = 4
	slack   = 4 // part of the median
	floor   = terms.MinBlocks
)

// Typical is what the most of those need who were observed.
func Typical(seen []int64) int64 {
	middle := median(seen)
	away := make([]int64, len(seen))
	for i, w := range seen {
		away[i] = max(w-middle, middle-w)
	}
	return Allowed(middle, median(away))
}

// Allowed is a deadline for those who need the middle, give or take a deviation.
func Allowed(middle, deviation int64) int64 {
	return middle + spread*deviation + max(floor, middle/slack)
}

// Adapt is a deadline that is not below the first one before enough is observed.
func Adapt(seen []int64, first int64) int64 {
	if len(seen) >= Trusted {
		return Typical(seen)
	}
	if len(seen) == 0 {
		return first
	}
	return max(Typical(seen), first)
}

// median is the upper one of an even number of values.
func median(values []int64) int64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// Remember appends an observation and forgets the oldest.
func Remember(seen []int64, blocks int64) []int64 {
	seen = append(slices.Clip(seen), blocks)
	return seen[max(0, len(seen)-remembered):]
}
