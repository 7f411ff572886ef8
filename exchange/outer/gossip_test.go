package outer

import (
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

var topologies = map[string]Topology{"complete": Complete, "ring": Ring, "expander": Expander,
	"small world": SmallWorld}

// Partners are mutual; at most one replica of an odd number is alone, or two on a ring of pairs.
func TestPartnersArePairs(t *testing.T) {
	for name, topology := range topologies {
		for _, n := range []int{1, 2, 3, 4, 7, 16, 33} {
			for round := range uint64(12) {
				alone := 0
				for self := range n {
					other := topology.Partner(n, self, round, 5)
					if other < 0 || other >= n || topology.Partner(n, other, round, 5) != self {
						t.Fatalf("%s of %d, round %d: %d goes to %d, which goes to %d", name, n, round, self, other,
							topology.Partner(n, other, round, 5))
					}
					if other == self {
						alone++
					}
				}
				if alone != n%2 {
					t.Errorf("%s of %d, round %d: %d are alone", name, n, round, alone)
				}
			}
		}
	}
}

// A neighbour on the ring is next to one; the other topologies have the neighbours that they promise.
func TestNeighbours(t *testing.T) {
	const n = 32
	for name, most := range map[string]int{"ring": 2, "expander": 4, "small world": 3, "complete": n - 1} {
		neighbours := map[int]bool{}
		for round := range uint64(200) {
			other := topologies[name].Partner(n, 9, round, 5)
			neighbours[other] = true
			if name == "ring" && other != 8 && other != 10 {
				t.Errorf("9 has neighbour %d on the ring", other)
			}
		}
		if len(neighbours) > most || len(neighbours) < 2 {
			t.Errorf("%s: %d neighbours, at most %d", name, len(neighbours), most)
		}
	}
}

// spread is how far apart numbers are after so many rounds of averaging in pairs, as a share of the start, and what
// their mean became.
func spread(topology Topology, n int, rounds uint64) (share, mean float64) {
	x := make([]float32, n)
	for i := range x { // far apart on the ring: half of it is 1, half -1
		x[i] = 1
		if i >= n/2 {
			x[i] = -1
		}
	}
	average := Gossip{Pull: 1}
	for round := range rounds {
		next := make([]float32, n)
		for i := range x {
			p := []float32{x[i]}
			other := topology.Partner(n, i, round, 7)
			average.Apply(p, []float32{0}, []float32{0}, []float32{0}, x[other:other+1])
			next[i] = p[0]
		}
		x = next
	}
	for _, v := range x {
		share += float64(v*v) / float64(n)
		mean += float64(v) / float64(n)
	}
	return share, mean
}

// News crosses an expander and random pairs far faster than a ring, and a few long ways make most of the difference.
func TestMixing(t *testing.T) {
	share := map[string]float64{}
	for name, topology := range topologies {
		var mean float64
		if share[name], mean = spread(topology, 64, 16); mean > 1e-6 || mean < -1e-6 {
			t.Errorf("%s: the mean became %v", name, mean)
		}
	}
	t.Log(share)
	if !(share["complete"] < 0.01 && share["expander"] < 0.05 && share["small world"] < share["ring"]/2 &&
		share["ring"] > 0.3) {
		t.Errorf("variance left after 16 rounds: %v", share)
	}
}

func TestGossipByHand(t *testing.T) {
	o := Gossip{Decay: 0.5, Rate: 0.25, Pull: 0.5}
	p, m := []float32{10}, []float32{4}
	// m = 0.5*4 - 0.25*mean(2, 6) - 0.5*(10 - mean(10, 6)) = 2 - 1 - 1
	o.Apply(p, m, []float32{2}, []float32{6}, []float32{6})
	near(t, "momentum", m, []float32{0})
	near(t, "parameters", p, []float32{10})
	o.Apply(p, m, []float32{2}, []float32{2}, p) // alone: no pull
	near(t, "alone", p, []float32{9.5})
}

// Replicas that meet in pairs only find the optimum, and stay close to each other.
func TestGossipTrains(t *testing.T) {
	const n, rounds = 8, 60
	o := Gossip{Decay: 0.5, Rate: 0.7, Pull: 0.7}
	var outer, momenta, local [n][]*tensor.Tensor
	for i := range n {
		outer[i], momenta[i], local[i] = zeros(), zeros(), zeros()
	}
	for round := range uint64(rounds) {
		var deltas [n][]*tensor.Tensor
		for i := range n {
			for l, x := range local[i] {
				for step := range uint64(10) {
					g := gradient(x.F32(), l, ((round*10+step)*n+uint64(i))*layers+uint64(l), 0.3)
					GradientDescent{0.05}.Step(x.F32(), g.F32(), nil)
				}
				d := outer[i][l].Clone()
				kernel.Sub(d.F32(), d.F32(), x.F32())
				deltas[i] = append(deltas[i], d)
			}
		}
		var before [n][]*tensor.Tensor
		for i := range n {
			before[i] = clone(outer[i])
		}
		for i := range n {
			other := Complete.Partner(n, i, round, 3)
			for l := range layers {
				o.Apply(outer[i][l].F32(), momenta[i][l].F32(), deltas[i][l].F32(), deltas[other][l].F32(), before[other][l].F32())
				copy(local[i][l].F32(), outer[i][l].F32())
			}
		}
	}
	for i := range n {
		if got := loss(outer[i]) / loss(zeros()); got > 0.005 {
			t.Errorf("replica %d: %v of the loss is left", i, got)
		}
	}
}
