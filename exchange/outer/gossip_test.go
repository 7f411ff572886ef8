package outer

import (
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
)

var topologies = map[string]Topology{"complete": Complete, "ring": Ring, "expander": Expander, "small world": SmallWorld}

// Who is paired with somebody is that one's partner; one of an odd number at most is alone, or two on a ring of pairs.
func TestPartnersArePairs(t *testing.T) {
	for name, topology := range topologies {
		for _, n := range []int{1, 2, 3, 4, 7, 16, 33} {
			for round := range uint64(12) {
				alone := 0
				for self := range n {
					other := topology.Partner(n, self, round, 5)
					if other < 0 || other >= n || topology.Partner(n, other, round, 5) != self {
						t.Fatalf("%s of %d, round %d: %d goes to %d, which goes to %d", name, n, round, self, other, topology.Partner(n, other, round, 5))
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

// spread is how far apart numbers are after so many rounds of averaging in pairs, as a share of the start, and what their
// mean became.
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
	if !(share["complete"] < 0.01 && share["expander"] < 0.05 && share["small world"] < share["ring"]/2 && share["ring"] > 0.3) {
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
					Descent{0.05}.Step(x.F32(), g.F32(), nil)
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

// Workers of DeMo share frequencies of their momenta after every step; all replicas move alike.
func TestDeMoTrains(t *testing.T) {
	const n = 4
	for _, bits := range []int{1, 16} {
		d := DeMo{Codec: codec.DCT{Side: 16, K: 32, Bits: bits}, Decay: 0.99}
		model := zeros()
		momenta := make([][layers]*tensor.Tensor, n)
		for step := range uint64(250) {
			rate := float32(0.02)
			if step >= 200 {
				rate = 0.004
			}
			for l, p := range model {
				var payloads [][]byte
				for w := range momenta {
					payload, next, err := d.Send(momenta[w][l], gradient(p.F32(), l, (step*n+uint64(w))*layers+uint64(l), 0.3), rate)
					if err != nil {
						t.Fatal(err)
					}
					momenta[w][l] = next
					payloads = append(payloads, payload)
				}
				if err := d.Apply(p, payloads, rate); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := loss(model) / loss(zeros()); got > 0.02 {
			t.Errorf("%d bits: %v of the loss is left", bits, got)
		} else {
			t.Logf("%d bits: %v of the loss is left", bits, got)
		}
	}
}

// Results that come a step late train as well, from gradients taken ahead.
func TestDeMoTrainsAStepLate(t *testing.T) {
	const n = 4
	d := DeMo{Codec: codec.DCT{Side: 16, K: 32, Bits: 1}, Decay: 0.99}
	model := zeros()
	momenta := make([][layers]*tensor.Tensor, n)
	var late [layers][][]byte
	for step := range uint64(250) {
		rate := float32(0.02)
		if step >= 200 {
			rate = 0.004
		}
		for l, p := range model {
			var payloads [][]byte
			for w := range momenta {
				at := p
				if m := momenta[w][l]; m != nil {
					at = d.Ahead(p, m, rate)
				}
				payload, next, err := d.Send(momenta[w][l], gradient(at.F32(), l, (step*n+uint64(w))*layers+uint64(l), 0.3), rate)
				if err != nil {
					t.Fatal(err)
				}
				momenta[w][l] = next
				payloads = append(payloads, payload)
			}
			if late[l] != nil {
				if err := d.Apply(p, late[l], rate); err != nil {
					t.Fatal(err)
				}
			}
			late[l] = payloads
		}
	}
	if got := loss(model) / loss(zeros()); got > 0.02 {
		t.Errorf("%v of the loss is left", got)
	}
	p, m := tensor.FromF32([]float32{1, 1, 1}, 3), tensor.FromF32([]float32{3, 0, -2}, 3)
	near(t, "ahead", d.Ahead(p, m, 0.25).F32(), []float32{0.75, 1, 1.25})
	near(t, "parameters", p.F32(), []float32{1, 1, 1})
}

// The sign moves every parameter by the rate, weight decay shrinks it, and where nothing was sent it stays.
func TestDeMoByHand(t *testing.T) {
	d := DeMo{Codec: codec.DCT{Side: 8, K: 1, Bits: 32}, Decay: 0.5, WeightDecay: 0.1}
	g := tensor.New(tensor.Make(tensor.Float32, 8, 8))
	for i := range g.F32() {
		g.F32()[i] = 2 // one frequency
	}
	payload, momentum, err := d.Send(nil, g, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range momentum.F32() {
		if v > 1e-6 || v < -1e-6 {
			t.Fatalf("%v stays in the momentum, all of it was sent", v)
		}
	}
	p := g.Clone()
	if err := d.Apply(p, [][]byte{payload, payload}, 0.5); err != nil {
		t.Fatal(err)
	}
	near(t, "parameters", p.F32(), []float32{2*0.95 - 0.5, 2*0.95 - 0.5})
	nothing, _, err := d.Send(nil, tensor.New(g.Shape), 0.5)
	if err != nil {
		t.Fatal(err)
	}
	d.WeightDecay = 0
	if err := d.Apply(p, [][]byte{nothing}, 0.5); err != nil {
		t.Fatal(err)
	}
	near(t, "nothing", p.F32(), []float32{1.4, 1.4})
	if d.Apply(p, [][]byte{payload[1:]}, 0.5) == nil || d.Apply(p, nil, 0.5) == nil {
		t.Error("bad payloads were applied")
	}
}

// Replicas that share a twentieth of their parameters after every step stay closer than those that share none, and their
// mean is not moved.
func TestSpartaKeepsReplicasTogether(t *testing.T) {
	x := [2]*tensor.Tensor{noise(1, 1000), noise(2, 1000)}
	apart := func() (sum float64) {
		for i, v := range x[0].F32() {
			d := float64(v - x[1].F32()[i])
			sum += d * d
		}
		return sum
	}
	start := apart()
	for round := range uint32(20) {
		s := Sparta{codec.RandomK{Every: 20, Seed: 1337, Round: round}}
		sent := [2]*tensor.Tensor{s.Send(x[0]), s.Send(x[1])}
		mean := sent[0].Clone()
		for k, v := range sent[1].F32() {
			mean.F32()[k] = (mean.F32()[k] + v) / 2
		}
		total := x[0].F32()[7] + x[1].F32()[7]
		for w := range x {
			s.Apply(x[w], sent[w], mean, 1)
		}
		near(t, "mean", []float32{x[0].F32()[7] + x[1].F32()[7]}, []float32{total})
		if round == 9 && (apart() > 0.6*start || apart() < 0.4*start) {
			t.Errorf("half of the rounds leave %v of the distance", apart()/start)
		}
	}
	if apart() > 1e-9 { // every parameter had its turn
		t.Errorf("%v apart, %v at the start", apart(), start)
	}
}
