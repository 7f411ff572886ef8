package outer

import (
	"errors"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/transform"
)

// Each model of a swarm begins as the same, and moves by the update of its own unit alone.
func TestModelsOfASwarmMoveAlone(t *testing.T) {
	s := spec(3, SGD, 1, 0)
	s.Exchange.Policies = 3
	c, err := Genesis(s.Exchange, []string{"w"}, map[string]*tensor.Tensor{"w": one(2)})
	if err != nil || len(c.Outer) != 2 {
		t.Fatalf("%+v, %v", c, err)
	}
	for range 2 {
		if c, err = Advance(s, c, [][]*tensor.Tensor{{one(0.25)}, {one(-1)}, {one(0)}}); err != nil {
			t.Fatal(err)
		}
	}
	for k, want := range []float32{1.5, 4, 2} {
		if got := train.Model(s, c, k).Params[0].F32()[0]; got != want {
			t.Errorf("model %d is %v, want %v", k, got, want)
		}
	}
	if n, err := State(s.Exchange); n != 2 || err != nil || c.Round != 2 {
		t.Errorf("%d tensors of state, %v, after round %d", n, err, c.Round)
	}
	if _, err := Advance(s, c, [][]*tensor.Tensor{{one(0)}, {one(0)}}); !errors.Is(err, ErrRound) {
		t.Errorf("two updates of three models: %v", err)
	}
	if _, err := Advance(s, base(1), [][]*tensor.Tensor{{one(0)}, {one(0)}, {one(0)}}); !errors.Is(err, ErrRound) {
		t.Errorf("a checkpoint of two models of three: %v", err)
	}
	wide := tensor.FromF32([]float32{0, 0}, 2)
	if _, err := Advance(s, c, [][]*tensor.Tensor{{one(0)}, {wide}, {one(0)}}); !errors.Is(err, ErrRound) {
		t.Errorf("an update of another shape: %v", err)
	}
}

// Updates of a swarm are not combined: nothing that combines them can be asked for.
func TestExchangesThatASwarmHasNot(t *testing.T) {
	right := spec(3, SGD, 1, 0).Exchange
	right.Policies = 3
	if err := Check(right); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*train.Exchange){
		"another optimizer": func(x *train.Exchange) { x.Outer, x.Momentum = Nesterov, 0.9 },
		"another rate":      func(x *train.Exchange) { x.Rate = 0.5 },
		"another rule":      func(x *train.Exchange) { x.Rule = "median" },
		"a transform":       func(x *train.Exchange) { x.Transform = transform.CosineTransform },
		"replicas":          func(x *train.Exchange) { x.SampleEvery = 32 },
		"gradients":         func(x *train.Exchange) { x.Gradients = true },
	} {
		x := right
		if change(&x); Check(x) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
