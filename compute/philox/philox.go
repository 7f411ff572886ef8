// Package philox makes random numbers that are a function of (seed, stream, index) and of nothing else, by
// Philox4x32-10, the same on every machine: words, integers in an interval and standard normal numbers.
package philox

import (
	"math"
	"math/bits"

	"github.com/starling-network/starling/compute/detmath"
)

// Block returns block index of the random stream (seed, stream): Philox4x32-10 (Salmon, Moraes, Dror and Shaw,
// Parallel random numbers: as easy as 1, 2, 3, SC 2011) with key seed and counter (index, stream), low words first.
func Block(seed, stream, index uint64) [4]uint32 {
	c := [4]uint32{uint32(index), uint32(index >> 32), uint32(stream), uint32(stream >> 32)}
	k0, k1 := uint32(seed), uint32(seed>>32)
	for range 10 {
		hi0, lo0 := bits.Mul32(0xD2511F53, c[0])
		hi1, lo1 := bits.Mul32(0xCD9E8D57, c[2])
		c = [4]uint32{hi1 ^ c[1] ^ k0, lo1, hi0 ^ c[3] ^ k1, lo0}
		k0 += 0x9E3779B9
		k1 += 0xBB67AE85
	}
	return c
}

// BlocksTo fills dst with the words of consecutive blocks of a stream, from block index on; the last may be cut.
func BlocksTo(dst []uint32, seed, stream, index uint64) {
	for i := 0; i < len(dst); i += 4 {
		w := Block(seed, stream, index+uint64(i/4))
		copy(dst[i:], w[:])
	}
}

// Reader reads the random stream (Seed, Stream) in order, a word at a time. Next is the position in words: it is all
// the state there is, and setting it seeks.
type Reader struct {
	Seed, Stream uint64
	Next         uint64
}

// New returns a reader at the start of stream (seed, stream).
func New(seed, stream uint64) *Reader { return &Reader{Seed: seed, Stream: stream} }

// Uint32 returns the next word.
func (p *Reader) Uint32() uint32 {
	w := Block(p.Seed, p.Stream, p.Next/4)[p.Next%4]
	p.Next++
	return w
}

// Uint64 returns the next two words, the first one low.
func (p *Reader) Uint64() uint64 {
	lo := p.Uint32()
	return uint64(p.Uint32())<<32 | uint64(lo)
}

// Uint64n returns a number below n, each equally likely. n must not be 0. It reads 2 words, seldom more
// (Lemire, Fast random integer generation in an interval, 2019).
func (p *Reader) Uint64n(n uint64) uint64 {
	hi, lo := bits.Mul64(p.Uint64(), n)
	if lo < n {
		for reject := -n % n; lo < reject; {
			hi, lo = bits.Mul64(p.Uint64(), n)
		}
	}
	return hi
}

// NormalTo fills dst with standard normal numbers. Element i depends on (seed, stream, i) alone: the Box-Muller
// transform of block i/4, computed in float64 and rounded once. Their absolute values stay below 6.8.
func NormalTo(dst []float32, seed, stream uint64) {
	for i := 0; i < len(dst); i += 4 {
		var z [4]float32
		w := Block(seed, stream, uint64(i/4))
		z[0], z[1] = normalPair(w[0], w[1])
		z[2], z[3] = normalPair(w[2], w[3])
		copy(dst[i:], z[:])
	}
}

// normalPair is the Box-Muller transform of two uniform words.
func normalPair(u, v uint32) (float32, float32) {
	radius := math.Sqrt(-2 * detmath.Log64(float64((float64(u)+0.5)*0x1p-32)))
	angle := float64((float64(v) + 0.5) * (math.Pi * 0x1p-31))
	return float32(radius * detmath.Cos64(angle)), float32(radius * detmath.Sin64(angle))
}
