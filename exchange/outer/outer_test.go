package outer

import (
	"errors"
	"math"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

func one(x float32) *tensor.Tensor { return tensor.FromF32([]float32{x}, 1) }

func spec(units uint32, outer string, rate, momentum float64) *train.Spec {
	return &train.Spec{Units: units, Exchange: train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: outer,
		Rate: rate, Momentum: momentum}}
}

func base(p float32) *train.Checkpoint {
	return &train.Checkpoint{Names: []string{"w"}, Params: []*tensor.Tensor{one(p)}, Outer: [][]*tensor.Tensor{{one(0)}}}
}

// One worker, rate 1 and no momentum: the new parameters are the worker's own, whose sign the pseudo-gradient must
// have.
func TestOneWorkerWithoutMomentumKeepsItsResult(t *testing.T) {
	before, after := float32(2), float32(1.25)
	next, err := Advance(spec(1, Nesterov, 1, 0), base(before), [][]*tensor.Tensor{{one(before - after)}})
	if err != nil || next.Params[0].F32()[0] != after || next.Round != 1 {
		t.Fatalf("%v, %v", next, err)
	}
}

func TestNesterovMatchesItsEquations(t *testing.T) {
	s, c := spec(2, Nesterov, 0.7, 0.9), base(1)
	p, u := 1.0, 0.0
	for _, d := range [][2]float32{{0.5, 0.25}, {-0.125, 0.5}, {1, 1}} {
		next, err := Advance(s, c, [][]*tensor.Tensor{{one(d[0])}, {one(d[1])}})
		if err != nil {
			t.Fatal(err)
		}
		g := float64(d[0]+d[1]) / 2
		u = 0.9*u + g
		p -= 0.7 * (g + 0.9*u)
		if got := float64(next.Params[0].F32()[0]); math.Abs(got-p) > 1e-6 {
			t.Fatalf("parameter %v, want %v", got, p)
		}
		c = next
	}
}

// Several workers with the same update are one worker, bit for bit.
func TestEqualWorkersAreOne(t *testing.T) {
	d := one(0.3)
	a, err1 := Advance(spec(1, Nesterov, 0.7, 0.9), base(1), [][]*tensor.Tensor{{d}})
	b, err2 := Advance(spec(4, Nesterov, 0.7, 0.9), base(1), [][]*tensor.Tensor{{d}, {d}, {d}, {d}})
	if err1 != nil || err2 != nil || a.Root() != b.Root() {
		t.Fatalf("%v %v: roots differ", err1, err2)
	}
}

func TestAdvanceDoesNotTouchItsBase(t *testing.T) {
	c := base(1)
	root := c.Root()
	if _, err := Advance(spec(1, Nesterov, 0.7, 0.9), c, [][]*tensor.Tensor{{one(1)}}); err != nil || c.Root() != root {
		t.Fatalf("%v: base changed", err)
	}
}

// A checkpoint carries the state of its optimizer, no more and no less.
func TestStateIsThatOfTheOptimizer(t *testing.T) {
	for name, n := range map[string]int{SGD: 0, Nesterov: 1, Adam: 2, Yogi: 2} {
		s := spec(1, name, 0.5, 0.5)
		s.Exchange.Decay, s.Exchange.Eps = 0.75, 1
		for state := range 4 {
			c, err := train.Genesis([]string{"w"}, map[string]*tensor.Tensor{"w": one(10)}, state)
			if err != nil {
				t.Fatal(err)
			}
			next, err := Advance(s, c, [][]*tensor.Tensor{{one(2)}})
			switch {
			case state != n && !errors.Is(err, ErrRound):
				t.Errorf("%s took a checkpoint with %d tensors of state: %v", name, state, err)
			case state == n && (err != nil || len(next.Outer) != n):
				t.Errorf("%s: %v, %v", name, next, err)
			}
		}
		c, err := Genesis(s.Exchange, []string{"w"}, map[string]*tensor.Tensor{"w": one(10)})
		if err != nil || len(c.Outer) != n {
			t.Errorf("%s begins with %v, %v", name, c, err)
		}
	}
}

func TestWrongNumberOfUpdates(t *testing.T) {
	if _, err := Advance(spec(2, Nesterov, 1, 0), base(1), [][]*tensor.Tensor{{one(1)}}); !errors.Is(err, ErrRound) {
		t.Fatalf("%v", err)
	}
}

func TestShapesOfUpdatesAreThoseOfTheModel(t *testing.T) {
	wide := tensor.FromF32([]float32{1, 2}, 2)
	if _, err := Advance(spec(1, Nesterov, 1, 0), base(1), [][]*tensor.Tensor{{wide}}); !errors.Is(err, ErrRound) {
		t.Errorf("an update of another shape: %v", err)
	}
	if _, err := Advance(spec(2, Nesterov, 1, 0), base(1),
		[][]*tensor.Tensor{{one(1)}, {one(1), one(2)}}); !errors.Is(err, ErrRound) {
		t.Errorf("an update of two tensors: %v", err)
	}
}

// By every robust rule that a job can name, one lying unit of five moves the checkpoint no further than the others
// would; the mean follows it.
func TestOneLiarOfFive(t *testing.T) {
	for rule, bears := range map[string]bool{
		aggregate.Mean: false, aggregate.TrimmedMean: true, aggregate.Median: true, aggregate.Krum: true,
		aggregate.MultiKrum:       true,
		aggregate.GeometricMedian: true, aggregate.CenteredClip: true, aggregate.ClippedMean: true,
	} {
		s := spec(5, Nesterov, 1, 0)
		s.Exchange.Rule, s.Exchange.Trim = rule, 0.2
		if err := Check(s.Exchange); err != nil {
			t.Fatal(err)
		}
		next, err := Advance(s, base(0), [][]*tensor.Tensor{{one(1)}, {one(1.25)}, {one(-1e9)}, {one(0.75)}, {one(1)}})
		if err != nil {
			t.Fatal(err)
		}
		moved := -next.Params[0].F32()[0]
		if near := moved >= 0.5 && moved <= 1.5; near != bears {
			t.Errorf("%s: moved by %v", rule, moved)
		}
	}
}

func TestUnknownNamesAreRefused(t *testing.T) {
	good := spec(1, Nesterov, 0.7, 0.9).Exchange
	for _, change := range []func(*train.Exchange){
		func(x *train.Exchange) { x.Codec = "zip" }, func(x *train.Exchange) { x.Rule = "vote" },
		func(x *train.Exchange) { x.Outer = "lamb" },
	} {
		x := good
		change(&x)
		if Check(good) != nil || Check(x) == nil {
			t.Errorf("%+v: %v", x, Check(x))
		}
	}
	s := spec(1, Nesterov, 1, 0)
	s.Exchange.Rule = "vote"
	if _, err := Advance(s, base(1), [][]*tensor.Tensor{{one(1)}}); err == nil {
		t.Error("advanced by a rule that nobody knows")
	}
}

// counted owns the memory of a tensor, and counts how often it rests.
type counted struct{ rests int }

func (c *counted) Rest([]byte) { c.rests++ }

// Updates that lie outside of memory rest once they are combined, and are not written to.
func TestUpdatesRestWhenCombined(t *testing.T) {
	at := new(counted)
	d := tensor.Lend(one(1).Shape, one(0.5).Bytes(), at)
	next, err := Consume(spec(2, Nesterov, 1, 0), base(2), [][]*tensor.Tensor{{d}, {one(0.5)}}, nil)
	if err != nil || next.Params[0].F32()[0] != 1.5 || at.rests != 1 || d.F32()[0] != 0.5 {
		t.Fatalf("%v, %v: rested %d times", next, err, at.rests)
	}
}
