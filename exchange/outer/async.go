package outer

import (
	"math"
	"math/bits"
)

// DelayedNesterov applies updates as they arrive, one worker at a time (Liu et al. 2024): each moves the
// parameters at once, and momentum takes a step after every Workers arrivals only, or it would be applied many times
// over. Share spreads the momentum over the arrivals: 0 gives all of it with the last, 1/Workers the same part with each.
type DelayedNesterov struct {
	Rate, Decay, Share float32
	Workers            int
}

// Arrivals is the state of DelayedNesterov for one parameter.
type Arrivals struct {
	Momentum, Sum []float32 // zeros at first
	Count         int
}

// Arrive moves p and its state, in place, by the pseudo-gradient d of one worker.
func (o DelayedNesterov) Arrive(p, d []float32, s *Arrivals) {
	d, m, sum := d[:len(p)], s.Momentum[:len(p)], s.Sum[:len(p)]
	inverse := 1 / float32(o.Workers)
	s.Count++
	last := s.Count%o.Workers == 0
	part := o.Share
	if last {
		part = 1 - float32(o.Share*float32(o.Workers-1))
	}
	momentum := float32(part * o.Decay)
	for i, g := range d {
		sum[i] += g
		if last {
			m[i] = float32(o.Decay*m[i]) + float32(sum[i]*inverse)
			sum[i] = 0
		}
		p[i] -= float32(o.Rate * (float32(momentum*m[i]) + float32(g*inverse)))
	}
}

// LocalSteps is how many of h inner steps a worker makes whose speed is given, beside the fastest, in any unit, so that
// all finish together (dynamic local updates, Liu et al. 2024): at least 1.
func LocalSteps(h int, speed, fastest uint64) int {
	if speed >= fastest {
		return h
	}
	high, low := bits.Mul64(uint64(h), speed)
	steps, _ := bits.Div64(high, low, fastest) // less than h
	return max(1, int(steps))
}

// Into how many segments units are cut for machines of different speeds: each ends in a state root. Of what fits alike the first counts
// that has at least usualSizes.
const (
	mostSizes  = 20
	usualSizes = 4
)

// Sizes cuts units of so many steps for machines of these paces, each above 0 and up to that of the fastest, which is 1: into so many
// segments that, with LocalSteps of them for each, the machines work the largest share of the time. It returns the segments of each,
// and that share.
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

// StaleWeight is the weight of an update that began s outer steps before the one it is applied in (FedBuff, Nguyen et al.
// 2022): 1/sqrt(1+s).
func StaleWeight(s int) float64 { return 1 / math.Sqrt(1+float64(s)) }

// Eager writes the update that worker one of n applies without waiting (Kale et al. 2025): its own fresh part, and
// everybody else's of the round before, own/n + (previousMean - previousOwn/n).
func Eager(dst, own, previousOwn, previousMean []float32, n int) {
	own, previousOwn, previousMean = own[:len(dst)], previousOwn[:len(dst)], previousMean[:len(dst)]
	inverse := 1 / float32(n)
	for i := range dst {
		dst[i] = float32(own[i]*inverse) + (previousMean[i] - float32(previousOwn[i]*inverse))
	}
}
