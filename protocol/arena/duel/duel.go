// Package duel compares two models by their losses on the same examples: a paired bootstrap (Koehn, EMNLP 2004; Efron
// and Tibshirani 1993, chapter 13) in integers, so that every machine has the same verdict.
package duel

import (
	"encoding/binary"
	"errors"

	"github.com/starling-network/starling/canon"
)

// Resamples is how many samples of the examples are drawn with replacement. tail is in how many of them the worse model
// may win: 2.5 %, so that two equal models have a verdict in 5 % of duels.
const (
	Resamples = 1000
	tail      = 25
)

// ErrLosses is returned for losses that are not of the same examples.
var ErrLosses = errors.New("duel: the losses are not of the same examples")

// Seed is the seed of a duel between two entries of a contest, by their numbers.
func Seed(seed canon.Digest, a, b uint32) canon.Digest {
	return canon.Sum("starling/arena-duel/1", seed[:], binary.BigEndian.AppendUint32(nil, a),
		binary.BigEndian.AppendUint32(nil, b))
}

// Better reports whether the first model is better than the second: whether its mean loss is smaller in all samples but
// tail. The losses are in any unit, one for each example; samples in which both are equal count for the second.
func Better(first, second []uint32, seed canon.Digest) (bool, error) {
	n := len(first)
	if n == 0 || n != len(second) || n > 1<<31 {
		return false, ErrLosses
	}
	gain := make([]int64, n)
	for i := range gain {
		gain[i] = int64(second[i]) - int64(first[i])
	}
	state := binary.BigEndian.Uint64(seed[:])
	lost := 0
	for range Resamples {
		sum := int64(0)
		for i := 0; i < n; i += 2 {
			var two uint64
			two, state = splitMix(state)
			sum += gain[two>>32*uint64(n)>>32]
			if i+1 < n {
				sum += gain[two&(1<<32-1)*uint64(n)>>32]
			}
		}
		if sum <= 0 {
			if lost++; lost > tail {
				return false, nil
			}
		}
	}
	return true, nil
}

// splitMix is the generator SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a number, and the next state.
func splitMix(state uint64) (number, next uint64) {
	next = state + 0x9e3779b97f4a7c15
	z := next
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31, next
}

// Digest of the losses of a model on each example.
func Digest(losses []uint32) canon.Digest {
	b := make([]byte, 0, 4*len(losses))
	for _, l := range losses {
		b = binary.LittleEndian.AppendUint32(b, l)
	}
	return canon.Sum("starling/arena-losses/1", b)
}

// Mean of losses, rounded down.
func Mean(losses []uint32) uint64 {
	sum := uint64(0)
	for _, l := range losses {
		sum += uint64(l)
	}
	return sum / uint64(max(1, len(losses)))
}
