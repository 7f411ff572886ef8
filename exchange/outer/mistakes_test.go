package outer

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

// Each test here is a mistake that an implementation of this family has made. Codecs and rules have theirs beside them.

func noise(seed uint64, n int) *tensor.Tensor {
	t := tensor.New(tensor.Make(tensor.Float32, n))
	kernel.NormalTo(t.F32(), seed, 0)
	return t
}

// The sign of the pseudo-gradient (torchft, issue 233): with one worker, rate 1 and no momentum the outer parameters
// become its own, to the bit where their difference has no rounding, and within its rounding elsewhere.
func TestSignOfThePseudoGradient(t *testing.T) {
	before := noise(1, 5000).F32()
	trained := noise(2, 5000)
	for i := range before {
		trained.F32()[i] = before[i] + trained.F32()[i]/8
	}
	local := []*tensor.Tensor{trained.Clone()}
	f := NewFragment(Momentum{1, 0}, []*tensor.Tensor{noise(1, 5000)})
	delta, err := f.Send(local)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Apply(Momentum{1, 0}, delta, local, DeltaRule); err != nil {
		t.Fatal(err)
	}
	exact := 0
	for i, p := range f.Params[0].F32() {
		a, b := before[i], trained.F32()[i]
		within := 1e-7 * max(math.Abs(float64(a)), math.Abs(float64(b)))
		if b/a >= 0.5 && b/a <= 2 { // then the difference has no rounding (Sterbenz)
			within = 0
			exact++
		}
		if math.Abs(float64(p-b)) > within {
			t.Fatalf("element %d: %v, want %v", i, p, b)
		}
	}
	if exact < 4000 {
		t.Errorf("only %d differences were exact", exact)
	}
	if local[0].Root() != f.Params[0].Root() {
		t.Error("the replica did not take the outer parameters")
	}
}

// Workers that compute the same are one worker, to the bit (for powers of two).
func TestEqualReplicasAreOne(t *testing.T) {
	for _, s := range []Strategy{DiLoCo(10), StreamingDiLoCo(20, 2, 3), SparseLoCo(10), FedAvg(5)} {
		var roots []string
		for _, workers := range []int{1, 2, 4, 8} {
			all := make([]*replica, workers)
			for w := range all {
				all[w] = newReplica(s)
			}
			for step := 1; step <= 60; step++ {
				for _, r := range all {
					for l, x := range r.local {
						g := gradient(x.F32(), l, uint64(step*layers+l), 0.3) // the same for all
						Descent{0.05}.Step(x.F32(), g.F32(), nil)
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
			root := ""
			for _, p := range all[0].outer(s) {
				root += p.Root().Short()
			}
			roots = append(roots, root)
		}
		for _, r := range roots[1:] {
			if r != roots[0] {
				t.Errorf("%+v: 1, 2, 4 and 8 equal workers end in %v", s.Schedule, roots)
			}
		}
	}
}

// Outer parameters and the optimizer's state are the checkpoint (torchft, issue 238): continuing from them is continuing,
// and continuing with parameters alone is not.
func TestStateBelongsToTheCheckpoint(t *testing.T) {
	for _, o := range []Optimizer{Momentum{0.7, 0.9}, Adaptive{Rate: 0.1, Beta1: 0.9, Beta2: 0.99, Tau: 1e-3}} {
		round := func(f *Fragment, n uint64) {
			local := clone(f.Params)
			if _, err := f.Send(local); err != nil {
				t.Fatal(err)
			}
			if err := f.Apply(o, []*tensor.Tensor{noise(n, 100)}, local, DeltaRule); err != nil {
				t.Fatal(err)
			}
		}
		f := NewFragment(o, []*tensor.Tensor{noise(1, 100)})
		round(f, 2)
		resumed := &Fragment{Params: clone(f.Params)}
		for _, s := range f.State {
			resumed.State = append(resumed.State, clone(s))
		}
		forgot := NewFragment(o, clone(f.Params))
		round(f, 3)
		round(resumed, 3)
		round(forgot, 3)
		if f.Params[0].Root() != resumed.Params[0].Root() {
			t.Errorf("%#v: resumed elsewhere", o)
		}
		if f.Params[0].Root() == forgot.Params[0].Root() {
			t.Errorf("%#v: the state makes no difference", o)
		}
	}
}

// A worker that joins has trained nothing: it takes no part in the mean, in place of a zero that counts in it.
func TestWhoJoinsIsNotInTheDenominator(t *testing.T) {
	zero := tensor.New(tensor.Make(tensor.Float32, 100))
	updates := []aggregate.Update{{Unit: 0, Weight: 1, Tensors: []*tensor.Tensor{noise(1, 100)}}, {Unit: 1, Weight: 0, Tensors: []*tensor.Tensor{zero}}}
	got, err := aggregate.Combine(aggregate.Average{}, updates)
	if err != nil || !slices.Equal(got[0].F32(), noise(1, 100).F32()) {
		t.Errorf("%v", err)
	}
}

// A fragment is sent once before it is applied, and the other way round; a second one in flight would overwrite it.
func TestFragmentsAreSentAndAppliedInTurn(t *testing.T) {
	o := Descent{1}
	f := NewFragment(o, []*tensor.Tensor{noise(1, 10)})
	local := clone(f.Params)
	if f.Apply(o, local, local, DeltaRule) == nil {
		t.Error("applied what was not sent")
	}
	if _, err := f.Send([]*tensor.Tensor{noise(1, 9)}); err == nil {
		t.Error("sent another shape")
	}
	if _, err := f.Send(nil); err == nil {
		t.Error("sent nothing")
	}
	delta, err := f.Send(local)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Send(local); err == nil {
		t.Error("sent twice")
	}
	if f.Apply(o, []*tensor.Tensor{noise(1, 9)}, local, DeltaRule) == nil || f.Apply(o, delta, nil, DeltaRule) == nil {
		t.Error("applied another shape")
	}
	if err := f.Apply(o, delta, local, DeltaRule); err != nil {
		t.Error(err)
	}
}

// What a replica learned while its update was under way stays with the delta rule, and is halved by the paper's merge.
func TestMergesByHand(t *testing.T) {
	for _, c := range []struct {
		name string
		m    Merge
		want float32
	}{{"delta rule", DeltaRule, 13}, {"mix", Mix(0.5), 8}, {"replace", Mix(0), 10}} {
		local := []float32{6} // it was 3 when it was sent
		c.m(local, []float32{3}, []float32{10})
		if local[0] != c.want {
			t.Errorf("%s: %v, want %v", c.name, local[0], c.want)
		}
	}
}

// The residual of a worker that was away is stale: nil starts again, and one of another layout is refused.
func TestResidualsStartAgain(t *testing.T) {
	s := SparseLoCo(10)
	delta := []*tensor.Tensor{noise(1, 5000), noise(2, 300)}
	first, residual, err := s.Pack(nil, delta)
	if err != nil || len(residual) != 2 {
		t.Fatal(err)
	}
	second, _, err := s.Pack(residual, delta)
	if err != nil || slices.Equal(first[0], second[0]) {
		t.Errorf("the residual makes no difference: %v", err)
	}
	again, _, err := s.Pack(nil, delta)
	if err != nil || !slices.Equal(first[0], again[0]) {
		t.Errorf("starting again is not starting: %v", err)
	}
	if _, _, err := s.Pack(residual[:1], delta); err == nil {
		t.Error("a residual of another layout was used")
	}
	if _, next, err := DiLoCo(10).Pack(nil, delta); err != nil || next != nil {
		t.Errorf("without feedback there is a residual: %v", err)
	}
}

// Payloads are as large as the recipe says: 64-bit positions made the reference implementation of DeMo eight times as
// large as it needs to be.
func TestBytesOnTheWire(t *testing.T) {
	model := []*tensor.Tensor{noise(1, 1<<20), noise(2, 4096)}
	params := 1<<20 + 4096
	for _, c := range []struct {
		name string
		Strategy
		perParam float64
	}{{"diloco", DiLoCo(10), 1.002}, {"streaming", StreamingDiLoCo(10, 1, 0), 0.5079}, {"sparseloco", SparseLoCo(10), 0.0195}, {"fedavg", FedAvg(10), 4}} {
		payloads, _, err := c.Pack(nil, model)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, p := range payloads {
			n += len(p)
		}
		if got := float64(n) / float64(params); math.Abs(got/c.perParam-1) > 0.01 {
			t.Errorf("%s: %.4f bytes a parameter, want %.4f", c.name, got, c.perParam)
		}
		if _, err := c.Unpack(payloads[:1], []tensor.Shape{model[0].Shape, model[1].Shape}); err == nil {
			t.Errorf("%s: half of an update was read", c.name)
		}
		if _, err := c.Unpack(payloads, []tensor.Shape{model[1].Shape, model[0].Shape}); err == nil {
			t.Errorf("%s: an update of other shapes was read", c.name)
		}
	}
}

// Averaging second moments with the delta rule can leave one below zero, whose root is not a number.
func TestSecondMomentsStayAboveZero(t *testing.T) {
	s := Sparta{codec.RandomK{Every: 1}}
	v := tensor.FromF32([]float32{4, 1}, 2)
	sent := s.Send(v)
	v.F32()[0] = 0.5 // it decayed meanwhile
	s.Apply(v, sent, tensor.FromF32([]float32{2, 3}, 2), 1)
	if v.F32()[0] != -1.5 {
		t.Fatalf("%v", v.F32())
	}
	if NonNegative(v.F32()); !slices.Equal(v.F32(), []float32{0, 3}) {
		t.Errorf("%v", v.F32())
	}
}
