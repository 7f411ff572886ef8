package outer

import (
	"github.com/starling-network/starling/compute/philox"
)

// Topology defines the neighbours of each replica.
type Topology uint8

const (
	// Complete draws pairs from all replicas in every round, as NoLoCo does.
	Complete Topology = iota
	// Ring pairs each replica with its two neighbours in turn. Information crosses it in n/2 rounds.
	Ring
	// Expander has four neighbours for each, from four fixed random pairings: information crosses it in about log n
	// rounds.
	Expander
	// SmallWorld is the ring with one random neighbour far away for each.
	SmallWorld
)

// Partner returns the replica of n that the given one exchanges with in a round, or itself if there is none: one of an
// odd number is left out.
func (t Topology) Partner(n, self int, round, seed uint64) int {
	switch t {
	case Ring:
		return besides(n, self, round)
	case Expander:
		return dealt(n, self, seed, round%4)
	case SmallWorld:
		if round%3 == 2 {
			return dealt(n, self, seed, 0)
		}
		return besides(n, self, round%3)
	}
	return dealt(n, self, seed, round)
}

// besides pairs 0 with 1, 2 with 3 and so on in even rounds, and 1 with 2, ..., n-1 with 0 in odd ones.
func besides(n, self int, round uint64) int {
	place := self
	if round%2 == 1 {
		place = (self + n - 1) % n
	}
	if place^1 >= n {
		return self
	}
	return (self + (place ^ 1) - place + n) % n
}

// dealt pairs the replicas of a random order, the first with the second and so on.
func dealt(n, self int, seed, stream uint64) int {
	order := make([]int, n)
	dice := philox.New(seed, stream)
	place := 0
	for i := range order {
		order[i] = i
		j := int(dice.Uint64n(uint64(i + 1)))
		order[i], order[j] = order[j], order[i]
	}
	for i, r := range order {
		if r == self {
			place = i
		}
	}
	if place^1 >= n {
		return self
	}
	return order[place^1]
}

// Gossip is NoLoCo (Kolehmainen et al. 2025): a replica averages with one partner in place of all. Its
// momentum takes the mean pseudo-gradient of both, and a pull to the mean of their parameters, which keeps replicas
// together though they are never equal. So there is no state to agree on: evaluate an average of replicas, and watch
// how far they are apart.
type Gossip struct {
	Decay float32 // of the momentum; 0.5
	Rate  float32 // of the pseudo-gradient; 0.7
	Pull  float32 // 0.7
}

// Apply moves the outer parameters p of a replica and its momentum m in place: m = Decay*m - Rate*mean(d) -
// Pull*(p - mean(p)), p += m, with means over the pair. own and theirs are the pseudo-gradients of both, partner the
// outer parameters of the other before its own step. Without a partner pass the replica's own.
func (o Gossip) Apply(p, m, own, theirs, partner []float32) {
	m, own, theirs, partner = m[:len(p)], own[:len(p)], theirs[:len(p)], partner[:len(p)]
	for i := range p {
		d := (own[i] + theirs[i]) * 0.5
		apart := (p[i] - partner[i]) * 0.5
		m[i] = float32(o.Decay*m[i]) - float32(o.Rate*d) - float32(o.Pull*apart)
		p[i] += m[i]
	}
}
