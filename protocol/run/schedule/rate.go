package schedule

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/starling-network/starling/protocol/run/terms"
)

const (
	// mostRate bounds the rates that count, as a multiple of the rate of the middle worker. A machine that is measured as
	// fast, but works slowly, is so dealt at most mostRate times the units of the middle worker in the first round.
	mostRate = 4
	// middleBlocks is the time that stands for that of the middle worker while none is measured: 16 blocks.
	middleBlocks = 16 << 8
)

// ByRate completes the times that workers take for a unit, in 1/256 block, by their rates. blocks[i] is the measured
// time of worker i, or 0; rates[i] its operations a second as the registry has measured them, or 0. Without a time a
// rate is converted as the times and rates of the other workers relate: by the middle one of them, which half of the
// workers cannot move. While no worker has both, times are in proportion to each other only. A worker without time and
// rate keeps 0.
func ByRate(blocks []uint32, rates []uint64) []uint32 {
	var known []uint64
	var both []int
	for i, rate := range rates {
		if rate > 0 {
			known = append(known, rate)
			if blocks[i] > 0 {
				both = append(both, i)
			}
		}
	}
	times := slices.Clone(blocks)
	if len(known) == 0 {
		return times
	}
	slices.Sort(known)
	middle := known[(len(known)-1)/2]
	most := max(middle, min(middle, 1<<60)*mostRate)
	counted := func(i int) uint64 { return min(rates[i], most) }
	took, at := uint64(middleBlocks), middle // a time, and the rate that takes it
	if len(both) > 0 {
		slices.SortStableFunc(both, func(a, b int) int {
			high, low := bits.Mul64(uint64(blocks[a]), counted(a))
			above, under := bits.Mul64(uint64(blocks[b]), counted(b))
			return cmp.Or(cmp.Compare(high, above), cmp.Compare(low, under))
		})
		ref := both[(len(both)-1)/2]
		took, at = uint64(blocks[ref]), counted(ref)
	}
	for i := range times {
		if times[i] > 0 || rates[i] == 0 {
			continue
		}
		times[i] = terms.MaxBlocks << 8
		if high, low := bits.Mul64(took, at); high < counted(i) {
			time, _ := bits.Div64(high, low, counted(i))
			times[i] = uint32(max(1, min(time, terms.MaxBlocks<<8)))
		}
	}
	return times
}

// tolerated is the part of the usual time by which a worker may be late or early without a correction: times differ a
// little, as units are whole.
const tolerated = 16

// Corrected is the rate of a worker, at most 2^60, corrected by the mean time that its units took. usual is that of the
// units of all workers; both are in 1/256 block. The rate is multiplied by 2*usual/(usual+took): a worker whose units
// took twice the usual time loses a third of it. It stays where the times differ by one block or less, or by usual/16.
func Corrected(rate, took, usual uint64) uint64 {
	away := max(took, usual) - min(took, usual)
	if away <= 1<<8 || away <= usual/tolerated {
		return rate
	}
	high, low := bits.Mul64(rate, 2*usual)
	corrected, _ := bits.Div64(high, low, usual+took) // less than twice the rate
	return corrected
}
