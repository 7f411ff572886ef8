package schedule

import (
	"cmp"
	"math/bits"
	"slices"
)

// Share is a number of blocks with a weight.
type Share struct {
	Blocks int64
	Weight uint64
}

// Weighted is the upper weighted median: of at least half of the weight none is above it.
func Weighted(all []Share) int64 {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b Share) int { return cmp.Compare(a.Blocks, b.Blocks) })
	var high, whole uint64 // a sum of stakes may exceed 64 bits
	for _, v := range sorted {
		var carry uint64
		whole, carry = bits.Add64(whole, v.Weight, 0)
		high += carry
	}
	half := whole>>1 | high<<63
	var sum uint64
	for _, v := range sorted {
		var carry uint64
		if sum, carry = bits.Add64(sum, v.Weight, 0); carry > 0 || sum > half {
			return v.Blocks
		}
	}
	return sorted[len(sorted)-1].Blocks
}
