// Package shuffle gives orders of numbers that everybody who knows a seed computes one place at a time, without holding
// them in memory. It does not know what is in an order.
package shuffle

import "math/bits"

// Order is a keyed bijection of the numbers below n, computed one at a time: a balanced Feistel network over the
// smallest even number of bits that holds n, walked until the result is below n (cycle walking: Black and Rogaway 2002,
// "Ciphers with arbitrary finite domains"). The domain is at most 4n, so a walk takes at most 4 steps on average.
// It is for spreading, not secrecy: anyone who knows the seed knows the order. Changing it changes what every run
// computes.
type Order struct {
	n    uint64
	half uint // bits of one half
	keys [feistelRounds]uint64
}

const feistelRounds = 8

// New returns the order of the numbers below n, which is 1 to 2^62, for an epoch of a seed.
func New(seed, epoch, n uint64) Order {
	p := Order{n: n, half: max(1, uint(bits.Len64(n-1)+1)/2)}
	key := mix(mix(seed) + epoch)
	for i := range p.keys {
		key += golden
		p.keys[i] = mix(key)
	}
	return p
}

// At returns which number is at place i, which is below n.
func (p *Order) At(i uint64) uint64 {
	for {
		if i = p.network(i); i < p.n {
			return i
		}
	}
}

func (p *Order) network(x uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	left, right := x>>p.half, x&mask
	for _, k := range p.keys {
		left, right = right, left^mix(k+right*golden)&mask
	}
	return left<<p.half | right
}

// golden is 2^64 divided by the golden ratio, odd; mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014,
// "Fast splittable pseudorandom number generators"), a bijection of 64 bits.
const golden = 0x9e3779b97f4a7c15

func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
