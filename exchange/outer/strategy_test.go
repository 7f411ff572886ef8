package outer

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

// A problem is a quadratic in four layers, of curvatures from 0.1 to 1, whose gradients every worker sees with noise.
const layers, width = 4, 16

var targets = func() (x [layers][width * width]float32) {
	for l := range x {
		kernel.NormalTo(x[l][:], 99, uint64(l))
	}
	return x
}()

func curvature(i int) float32 { return 0.1 + 0.9*float32(i%8)/7 }

// gradient adds noise that is uniform within half of its size on both sides.
func gradient(x []float32, layer int, stream uint64, noise float32) *tensor.Tensor {
	g := tensor.New(tensor.Make(tensor.Float32, width, width))
	var words [width * width]uint32
	kernel.PhiloxTo(words[:], 5, stream, 0)
	for i, v := range x {
		g.F32()[i] = float32(curvature(i)*(v-targets[layer][i])) + float32(noise*(float32(words[i])*0x1p-32-0.5))
	}
	return g
}

func loss(model []*tensor.Tensor) (sum float64) {
	for l, p := range model {
		for i, v := range p.F32() {
			d := float64(v - targets[l][i])
			sum += float64(curvature(i)) * d * d / 2 / (layers * width * width)
		}
	}
	return sum
}

func zeros() []*tensor.Tensor {
	var m []*tensor.Tensor
	for range layers {
		m = append(m, tensor.New(tensor.Make(tensor.Float32, width, width)))
	}
	return m
}

func clone(x []*tensor.Tensor) []*tensor.Tensor {
	var y []*tensor.Tensor
	for _, t := range x {
		y = append(y, t.Clone())
	}
	return y
}

// replica is a worker of a run: its own model and its side of every fragment.
type replica struct {
	local     []*tensor.Tensor
	fragments []*Fragment
	residual  [][]*tensor.Tensor
	pending   [][]*tensor.Tensor // what everybody will apply, by fragment
}

func newReplica(s Strategy) *replica {
	r := &replica{local: zeros(), residual: make([][]*tensor.Tensor, s.Schedule.Fragments), pending: make([][]*tensor.Tensor, s.Schedule.Fragments)}
	for f := range s.Schedule.Fragments {
		r.fragments = append(r.fragments, NewFragment(s.Optimizer, clone(r.part(s, f))))
	}
	return r
}

// part returns the replica's own layers of a fragment.
func (r *replica) part(s Strategy, fragment int) (p []*tensor.Tensor) {
	for l, t := range r.local {
		if s.Schedule.Fragment(l) == fragment {
			p = append(p, t)
		}
	}
	return p
}

// outer returns the model that all replicas agree on.
func (r *replica) outer(s Strategy) (m []*tensor.Tensor) {
	for l := range layers {
		m = append(m, r.fragments[s.Schedule.Fragment(l)].Params[l/s.Schedule.Fragments])
	}
	return m
}

// run trains workers by a strategy, and returns them.
func run(t *testing.T, s Strategy, workers, steps int, rate, noise float32) []*replica {
	t.Helper()
	if err := s.Schedule.Check(); err != nil {
		t.Fatal(err)
	}
	all := make([]*replica, workers)
	for w := range all {
		all[w] = newReplica(s)
	}
	for step := 1; step <= steps; step++ {
		for w, r := range all {
			for l, x := range r.local {
				g := gradient(x.F32(), l, uint64((step*workers+w)*layers+l), noise)
				Descent{rate}.Step(x.F32(), g.F32(), nil)
			}
		}
		if f, ok := s.Schedule.Applies(step); ok && s.Schedule.Delay > 0 {
			apply(t, s, all, f)
		}
		if f, ok := s.Schedule.Sends(step); ok {
			send(t, s, all, f)
			if s.Schedule.Delay == 0 {
				apply(t, s, all, f)
			}
		}
	}
	return all
}

func send(t *testing.T, s Strategy, all []*replica, f int) {
	t.Helper()
	var updates []aggregate.Update
	for w, r := range all {
		delta, err := r.fragments[f].Send(r.part(s, f))
		if err != nil {
			t.Fatal(err)
		}
		var payloads [][]byte
		if payloads, r.residual[f], err = s.Pack(r.residual[f], delta); err != nil {
			t.Fatal(err)
		}
		var shapes []tensor.Shape
		for _, d := range delta {
			shapes = append(shapes, d.Shape)
		}
		if delta, err = s.Unpack(payloads, shapes); err != nil {
			t.Fatal(err)
		}
		updates = append(updates, aggregate.Update{Unit: uint32(w), Weight: 1, Tensors: delta})
	}
	for w, r := range all {
		// Updates arrive in another order at everybody.
		arrived := append(append([]aggregate.Update{}, updates[w:]...), updates[:w]...)
		var err error
		if r.pending[f], err = aggregate.Combine(s.Rule, arrived); err != nil {
			t.Fatal(err)
		}
	}
}

func apply(t *testing.T, s Strategy, all []*replica, f int) {
	t.Helper()
	for _, r := range all {
		if err := r.fragments[f].Apply(s.Optimizer, r.pending[f], r.part(s, f), s.Merge); err != nil {
			t.Fatal(err)
		}
	}
}

var rewrite = flag.Bool("rewrite", false, "rewrite the golden files")

// Every strategy gets to the optimum, its replicas agree on every bit of the model, and so does every machine.
func TestStrategiesConvergeAndAgree(t *testing.T) {
	start := loss(zeros())
	var golden strings.Builder
	mix := StreamingDiLoCo(20, 4, 2)
	mix.Merge = Mix(0.5)
	robust := DiLoCo(20)
	robust.Rule = aggregate.Clipping{Iterations: 3}
	adaptive := DiLoCo(20)
	adaptive.Optimizer = Adaptive{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Tau: 1e-3}
	yogi := adaptive
	yogi.Optimizer = Adaptive{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Tau: 1e-3, Yogi: true}
	lowRank := DiLoCo(5)
	lowRank.Codec, lowRank.Feedback, lowRank.Optimizer = codec.LowRank{Rank: 4, Seed: 1}, 1, Descent{0.7}
	sparse := SparseLoCo(5)
	sparse.Codec = codec.TopK{Chunk: width * width, K: 16, Bits: 2} // layers are too small for 64
	signs := DiLoCo(20)
	signs.Codec, signs.Feedback, signs.Optimizer = named(codec.Sign), 1, Descent{0.7}
	for _, c := range []struct {
		name string
		Strategy
		below float64 // of the loss at the start
	}{
		{"diloco", DiLoCo(20), 0.001}, {"fedavg", FedAvg(20), 0.002}, {"streaming", StreamingDiLoCo(20, 4, 2), 0.002},
		{"streaming without delay", StreamingDiLoCo(20, 2, 0), 0.002}, {"a round late", StreamingDiLoCo(20, 1, 20), 0.03},
		{"streaming with the merge of the paper", mix, 0.01}, {"sparseloco", sparse, 0.01}, {"robust", robust, 0.001},
		{"fedadam", adaptive, 0.03}, {"fedyogi", yogi, 0.03}, {"powersgd", lowRank, 0.01}, {"signs", signs, 0.02},
	} {
		all := run(t, c.Strategy, 4, 600, 0.05, 0.3)
		model := all[0].outer(c.Strategy)
		fmt.Fprintf(&golden, "%-38s %s %s\n", c.name, model[0].Root().Short(), model[layers-1].Root().Short())
		if got := loss(model) / start; !(got < c.below) {
			t.Errorf("%s: %.5f of the loss is left, want %v", c.name, got, c.below)
		} else {
			t.Logf("%s: %.5f of the loss is left", c.name, got)
		}
		for w, r := range all {
			for l, p := range r.outer(c.Strategy) {
				if p.Root() != model[l].Root() {
					t.Fatalf("%s: replica %d has another layer %d", c.name, w, l)
				}
			}
		}
	}
	const file = "testdata/strategies.txt"
	if *rewrite {
		if err := os.WriteFile(file, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || string(want) != golden.String() {
		t.Fatalf("%v, got\n%s", err, golden.String())
	}
}

// Evaluating a replica, with its own noise, is worse than evaluating what all agree on.
func TestOuterParametersAreTheModel(t *testing.T) {
	s := DiLoCo(20)
	all := run(t, s, 4, 615, 0.05, 0.3) // 15 steps after an exchange
	if outer, own := loss(all[0].outer(s)), loss(all[0].local); outer > own {
		t.Errorf("loss of the outer parameters %v, of a replica %v", outer, own)
	}
}
