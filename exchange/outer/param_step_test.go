package outer

import (
	"math"
	"testing"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

// herd is a job of replicas that are trained by dice.
type herd struct {
	t        *testing.T
	spec     *train.Spec
	base     *train.Checkpoint
	from     [][]*tensor.Tensor
	replicas [][]*tensor.Tensor // the weights of each
	sent     int                // bytes of the payloads of unit 0
	waiting  [][]*tensor.Tensor // updates that are in no checkpoint yet
}

func newHerd(t *testing.T, x train.Exchange) *herd {
	h := &herd{t: t, spec: &train.Spec{Seed: 3, Rounds: 100, Units: 3, Exchange: x}}
	h.base = &train.Checkpoint{Names: []string{"h.0.w", "h.1.w", "wte"}}
	for i, n := range []int{500, 70, 900} {
		p := tensor.New(tensor.Make(tensor.Float32, n))
		philox.NormalTo(p.F32(), 1, uint64(i))
		h.base.Params = append(h.base.Params, p)
	}
	state, err := State(x)
	if err != nil {
		t.Fatal(err)
	}
	h.base.Outer = train.Zeros(h.base.Params, state)
	h.from = make([][]*tensor.Tensor, h.spec.Units)
	return h
}

// round trains and exchanges, and returns the checkpoint that it began with.
func (h *herd) round() *train.Checkpoint {
	h.t.Helper()
	before, deltas := h.base, make([][]*tensor.Tensor, h.spec.Units)
	h.replicas = nil
	for u := range deltas {
		r, ends := new(train.Result), []*tensor.Tensor(nil)
		for i, p := range before.Params {
			end := p.Clone()
			if below := train.Below(h.spec.Exchange, before, uint32(u), h.from[u]); below != nil {
				end = train.Difference(p, below[i])
			}
			walk := make([]float32, len(end.F32()))
			philox.NormalTo(walk, uint64(before.Round)*10+uint64(u), uint64(i))
			for k, x := range walk {
				end.F32()[k] += 0.1 * x
			}
			if below := h.from[u]; below != nil && h.spec.UnderWay(before.Round, before.Names[i]) {
				p = train.Difference(p, below[i])
			}
			r.Delta, ends = append(r.Delta, train.Difference(p, end)), append(ends, end)
		}
		h.replicas = append(h.replicas, ends)
		update, on, err := Commit(h.spec, before.Names, before.Round, uint32(u), r, h.from[u])
		if err != nil {
			h.t.Fatal(err)
		}
		if u == 0 {
			h.sent = 0
			for _, p := range update.Payloads {
				h.sent += len(p)
			}
		}
		if deltas[u], err = Unpack(h.spec, before, before.Round, uint32(u), update.Root(), update.Encode()); err != nil {
			h.t.Fatal(err)
		}
		h.from[u] = on
	}
	var err error
	h.waiting = append(h.waiting, deltas...)
	n := len(h.spec.Applied(before.Round)) * len(deltas)
	deltas, h.waiting = h.waiting[:n], h.waiting[n:]
	if h.base, err = Advance(h.spec, before, deltas); err != nil {
		h.t.Fatal(err)
	}
	return before
}

// at is element k of a parameter of a replica at the start of the next round.
func (h *herd) at(u, i, k int) float64 {
	x := h.base.Params[i].F32()[k]
	if below := train.Below(h.spec.Exchange, h.base, uint32(u), h.from[u]); below != nil {
		x -= below[i].F32()[k]
	}
	return float64(x)
}

func within(a, b, by float64) bool { return math.Abs(a-b) <= by }

// In rounds of random elements these move to the mean of the replicas, in the checkpoint and in every replica; the
// other elements stay as they are in the checkpoint, and as trained in every replica. The last round of a group
// exchanges all.
func TestRoundsOfRandomElements(t *testing.T) {
	for _, rule := range []string{Nesterov, SGD} {
		h := newHerd(t, train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: rule, Rate: 1, Momentum: 0.9,
			SampleEvery: 8, Carry: 4})
		for round := range uint32(8) {
			before := h.round()
			whole := round%4 == 3
			moved := 0
			for i, p := range before.Params {
				for k, x := range p.F32() {
					mean := 0.
					for u := range h.replicas {
						mean += float64(h.replicas[u][i].F32()[k]) / 3
					}
					if x != h.base.Params[i].F32()[k] {
						moved++
					}
					for u := range h.replicas {
						switch got := h.at(u, i, k); {
						case rule == Nesterov && whole:
						case x == h.base.Params[i].F32()[k] && !whole:
							if !within(got, float64(h.replicas[u][i].F32()[k]), 1e-6) {
								t.Fatalf("round %d: replica %d goes on from %v, it came to %v", round, u, got, h.replicas[u][i].F32()[k])
							}
						case !within(got, mean, 0.01): // of values in bfloat16
							t.Fatalf("round %d: replica %d goes on from %v, the mean is %v", round, u, got, mean)
						}
					}
				}
			}
			if n := 500 + 70 + 900; whole && (moved < n-2 || h.from[0] != nil || h.sent != 4*n) || !whole &&
				(moved > n/8+3 || moved < n/8-3 || h.sent > 2*(n/8+3)) {
				t.Errorf("%s: in round %d %d elements moved, with %d bytes", rule, round, moved, h.sent)
			}
			for _, u := range h.base.Outer {
				if still := u[0].Root() == before.Outer[0][0].Root(); still == whole {
					t.Errorf("in round %d the momentum stays: %v", round, still)
				}
			}
		}
	}
}

// In rounds of fragments one of them is exchanged, and moves with its state; the replicas drift apart in the others.
func TestRoundsOfFragments(t *testing.T) {
	h := newHerd(t, train.Exchange{Codec: codec.E3M0, Rule: aggregate.Mean, Outer: Nesterov, Rate: 0.7, Momentum: 0.9,
		Fragments: 2, Carry: 5})
	for round := range uint32(10) {
		before := h.round()
		for i, fragment := range []uint32{0, 1, 1} { // what is in no layer is in the last
			turn := round%5 == 4 || round%5%2 == fragment
			roots := func(c *train.Checkpoint) [2]canon.Digest {
				return [2]canon.Digest{c.Params[i].Root(), c.Outer[0][i].Root()}
			}
			was, is := roots(before), roots(h.base)
			if moved := was[0] != is[0] && was[1] != is[1]; moved != turn || !moved && was != is {
				t.Errorf("round %d: parameter %d moved: %v", round, i, moved)
			}
			if !turn && !within(h.at(1, i, 7), float64(h.replicas[1][i].F32()[7]), 1e-6) {
				t.Errorf("round %d: parameter %d of a replica goes on from %v, it came to %v", round, i, h.at(1, i, 7),
					h.replicas[1][i].F32()[7])
			}
		}
	}
	if err := Exchanged(h.spec.Exchange, h.base.Names); err != nil {
		t.Error(err)
	}
	h.spec.Exchange.Fragments = 4
	if Exchanged(h.spec.Exchange, h.base.Names) == nil {
		t.Error("the third of four fragments has parameters")
	}
}

// Where rounds overlap, the progress of a unit on a parameter that it sends is in the checkpoint after the next round,
// once and in whole, and after a group all progress is. The unit continues from the checkpoint with its share of the
// updates under way, and with all progress that it has not sent. A single unit with a share of 1 trains as if there
// were no rounds.
func TestRoundsThatOverlap(t *testing.T) {
	for _, c := range []struct {
		share            float64
		fragments, carry uint32 // no fragments: everything is sent in every round
		units            uint32
	}{
		{1, 0, 4, 3}, {0.5, 0, 4, 3}, {1, 0, 2, 1}, {1, 2, 8, 1}, {1, 2, 8, 3}, {0.5, 2, 8, 2}, {1, 2, 3, 2},
		{0.25, 2, 5, 3}, {1, 3, 4, 1}, {0.75, 3, 8, 2}, {1, 3, 7, 3},
	} {
		h := newHerd(t, train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: SGD, Rate: 1, Overlap: c.share,
			Fragments: c.fragments, Carry: c.carry})
		h.spec.Units = c.units
		h.from = h.from[:c.units]
		const k = 7 // one element of each parameter stands for all
		var place [3]float64
		for i := range place {
			place[i] = float64(h.base.Params[i].F32()[k])
		}
		// progress of the units: not sent, and sent in the round before
		unsent, waits := make([][3]float64, c.units), make([][3]float64, c.units)
		for round := range 3 * c.carry {
			before := make([][3]float64, c.units)
			for u := range before {
				for i := range place {
					before[u][i] = h.at(u, i, k)
				}
			}
			h.round()
			for i, fragment := range []uint32{0, 1, 2} {
				fragment = min(fragment, max(c.fragments, 1)-1)
				last := round%c.carry == c.carry-1
				sends := last || c.fragments == 0 || round%c.carry%c.fragments == fragment
				for u := range unsent {
					place[i] += waits[u][i] / float64(c.units)
					waits[u][i] = 0
					came := float64(h.replicas[u][i].F32()[k])
					unsent[u][i] += came - before[u][i]
					if sends {
						waits[u][i], unsent[u][i] = unsent[u][i], 0
					}
					if last {
						place[i] += waits[u][i] / float64(c.units)
						waits[u][i] = 0
					}
				}
				if got := float64(h.base.Params[i].F32()[k]); !within(got, place[i], 1e-5) {
					t.Errorf("%+v, round %d: parameter %d of the checkpoint is at %v, want %v", c, round, i, got, place[i])
				}
				for u := range unsent {
					if got, want := h.at(u, i, k), place[i]+c.share*waits[u][i]+unsent[u][i]; !within(got, want, 1e-5) {
						t.Errorf("%+v, round %d: parameter %d of unit %d goes on from %v, want %v", c, round, i, u, got, want)
					}
					if came := float64(h.replicas[u][i].F32()[k]); c.units == 1 && c.share == 1 && !within(h.at(u, i, k), came, 1e-5) {
						t.Errorf("%+v, round %d: parameter %d goes on from %v, it came to %v", c, round, i, h.at(u, i, k), came)
					}
				}
			}
		}
		if len(h.waiting) != 0 || h.base.Round != 3*c.carry {
			t.Errorf("%+v: %d updates are in no checkpoint after round %d", c, len(h.waiting), h.base.Round)
		}
		if _, err := Advance(h.spec, h.base, make([][]*tensor.Tensor, c.units)); err == nil {
			t.Errorf("%+v: updates are taken in the first round of a group", c)
		}
	}
}

// Replicas in pairs move as the equations of NoLoCo say, each with its partner of the round, and the checkpoint is
// their mean.
func TestRoundsInPairs(t *testing.T) {
	for name, topology := range pairings {
		h := newHerd(
			t,
			train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: PairwiseGossip, Rate: 0.7, Momentum: 0.5,
				Pairs: 3, Topology: name},
		)
		if err := Check(h.spec.Exchange); err != nil {
			t.Fatal(err)
		}
		const i, k = 1, 7 // one element stands for all
		var place, momentum [3]float64
		for u := range place {
			place[u] = float64(h.base.Params[i].F32()[k])
		}
		for round := range uint64(6) {
			h.round()
			was := place
			mean := 0.
			for u := range place {
				v := topology.Partner(3, u, round, h.spec.Seed)
				learned := func(u int) float64 { return was[u] - float64(h.replicas[u][i].F32()[k]) }
				momentum[u] = 0.5*momentum[u] - 0.7*(learned(u)+learned(v))/2 - 0.7*(was[u]-was[v])/2
				place[u] += momentum[u]
				mean += place[u] / 3
				if got := h.at(u, i, k); !within(got, place[u], 1e-5) {
					t.Errorf("%s, round %d: replica %d is at %v, want %v", name, round, u, got, place[u])
				}
			}
			if got := float64(h.base.Params[i].F32()[k]); !within(got, mean, 1e-5) {
				t.Errorf("%s, round %d: the checkpoint is at %v, the mean is %v", name, round, got, mean)
			}
		}
	}
	for _, bad := range []train.Exchange{
		{Codec: codec.Float32, Rule: aggregate.Mean, Outer: PairwiseGossip, Pairs: 3},
		{Codec: codec.Float32, Rule: aggregate.Mean, Outer: SGD, Pairs: 3, Topology: "ring"},
		{Codec: codec.Float32, Rule: aggregate.Median, Outer: PairwiseGossip, Pairs: 3, Topology: "ring"},
		{Codec: codec.Float32, Rule: aggregate.Mean, Outer: PairwiseGossip},
	} {
		if Check(bad) == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
