package outer

import (
	"math"
	"math/bits"
)

// LocalSteps is how many of h inner steps a worker makes whose speed is given in the same measure as the fastest, so
// that all finish together (dynamic local updates, Liu et al. 2024): at least 1.
func LocalSteps(h int, speed, fastest uint64) int {
	if speed >= fastest {
		return h
	}
	high, low := bits.Mul64(uint64(h), speed)
	steps, _ := bits.Div64(high, low, fastest) // less than h
	return max(1, int(steps))
}

// Limits of the number of segments of a unit, for machines of different speeds: each ends in a state root. Of several
// numbers that fit equally well, the first from usualSizes on counts.
const (
	mostSizes  = 20
	usualSizes = 4
)

// Sizes cuts units of this number of steps for machines of these relative speeds, each above 0 and at most 1, which is
// the fastest. The number of segments is chosen so that the machines, each with LocalSteps of the segments, work the
// largest share of the time. It returns the segments of each, and that share.
func Sizes(steps uint32, paces []float64) (sizes []uint32, share float64) {
	const scale = 1 << 20
	for n := uint32(1); n <= min(mostSizes, steps); n++ {
		if steps%n != 0 {
			continue
		}
		list, all, longest, together := make([]uint32, len(paces)), 0., 0., 0.
		for i, pace := range paces {
			list[i] = uint32(LocalSteps(int(n), uint64(math.Round(pace*scale)), scale))
			all += float64(list[i])
			longest = max(longest, float64(list[i])/pace)
			together += pace
		}
		if s := all / (longest * together); s > share+1e-9 || s > share-1e-9 && n <= usualSizes {
			sizes, share = list, s
		}
	}
	return sizes, share
}
