// Package schedule is the arithmetic of time in a run: how long a duty may take, given the observed times, and which
// worker gets which units, given the speed of each. It holds no state, and knows units, members and rounds only by
// number.
package schedule

import (
	"slices"

	"github.com/starling-network/starling/protocol/run/terms"
)

// The deadline of a duty follows the observed times: the median, plus four times the median absolute deviation, plus a
// quarter of the median and at least a floor. The margin is wide because waiting for a machine that recovers from a
// fault costs less than giving its work to another. A member that has just missed a deadline gets twice the time for
// its next duty: so a slow machine is measured before it has missed too many, and a network that slows down as a whole
// does not lose all its members.
const (
	remembered = 32 // observations
	// Trusted is how many observations say enough; with fewer there is more time.
	Trusted = 8
	spread  = 4
	slack   = 4 // part of the median
	floor   = terms.MinBlocks
)

// Typical is the deadline that follows from observed times.
func Typical(seen []int64) int64 {
	middle := median(seen)
	away := make([]int64, len(seen))
	for i, w := range seen {
		away[i] = max(w-middle, middle-w)
	}
	return Allowed(middle, median(away))
}

// Allowed is the deadline for a median time and its deviation.
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
