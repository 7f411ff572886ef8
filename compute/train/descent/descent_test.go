package descent_test

import (
	"math"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/modeltest"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/descent"
)

const batch, length = 2, 4

// adapted is the step of a model with adapters, with its frozen tensors and the state that it begins with.
func adapted(t *testing.T, o optimizer.Optimizer) (p *program.Program, frozen, state []*tensor.Tensor) {
	t.Helper()
	c, err := architecture.Parse(architecture.Llama, modeltest.Llama())
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Adapt(architecture.LoRA{Rank: 2, Alpha: 2, Targets: []string{"q_proj", "down_proj"}})
	if err != nil {
		t.Fatal(err)
	}
	if p, err = model.TrainStep(a, o, batch, length); err != nil {
		t.Fatal(err)
	}
	base, first, shapes := architecture.Init(c.Tensors(), 1), architecture.Init(a.Adapters(), 2), p.InputShapes()
	for _, n := range train.Frozen(p) {
		frozen = append(frozen, base[n])
	}
	for _, n := range train.Params(p) {
		x := first[n].Clone()
		for i := range x.F32() {
			x.F32()[i] += 0.01 * float32(i%7)
		}
		state = append(state, x)
	}
	for _, n := range train.Moments(p) {
		state = append(state, tensor.New(shapes[n]))
	}
	return p, frozen, state
}

var tokens = []int32{1, 2, 3, 4, 5, 3, 1, 2, 0, 4}

// Both programs together take the step of the whole one.
func TestStepIsThatOfTheProgram(t *testing.T) {
	for _, o := range []optimizer.Optimizer{optimizer.SGD{Common: optimizer.Common{MaxGradNorm: 0.1, Proximal: 0.5}},
		optimizer.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1}} {
		p, frozen, state := adapted(t, o)
		d, err := descent.New(p, o, nil, frozen, 1)
		if err != nil {
			t.Fatal(err)
		}
		exec, err := cpu.Compile(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Begin(state); err != nil {
			t.Fatal(err)
		}
		in := map[string]*tensor.Tensor{"tokens": tensor.FromI32(tokens, batch, length+1), "lr": tensor.Scalar(0.1),
			"c1": tensor.Scalar(1), "c2": tensor.Scalar(1)}
		for i, n := range train.Frozen(p) {
			in[train.Param+n] = frozen[i]
		}
		names := train.StateNames(p)
		for i, n := range names {
			in[n] = state[i]
		}
		for i, n := range train.Params(p) {
			in[train.Anchor+n] = state[i]
		}
		for _, n := range train.Params(p) {
			if _, anchored := p.InputShapes()[train.Anchor+n]; !anchored {
				delete(in, train.Anchor+n)
			}
		}
		for range 2 {
			out, err := exec.Run(in)
			if err != nil {
				t.Fatal(err)
			}
			loss, err := d.Step(tokens, nil, 0.1, 1, 1)
			if err != nil || math.Abs(float64(loss-out["loss"].F32()[0])) > 1e-6 {
				t.Errorf("%T: loss %v, wanted %v: %v", o, loss, out["loss"], err)
			}
			for _, n := range names {
				in[n] = out[n]
			}
		}
		if err := d.State(state); err != nil {
			t.Fatal(err)
		}
		for i, n := range names {
			for k, x := range state[i].F32() {
				if want := in[n].F32()[k]; math.Abs(float64(x-want)) > 1e-6 {
					t.Fatalf("%T: element %d of %s is %v, wanted %v", o, k, n, x, want)
				}
			}
		}
	}
}

// A parameter that is not trained stays as it is, and one that is steered moves by that, too.
func TestSomeAreTrainedAndSteered(t *testing.T) {
	o := optimizer.SGD{}
	p, frozen, state := adapted(t, o)
	names := train.Params(p)
	in := func(name string) bool { return name == names[1] }
	end := func(steer []*tensor.Tensor) []*tensor.Tensor {
		d, err := descent.New(p, o, in, frozen, 1)
		if err != nil {
			t.Fatal(err)
		}
		if d.Steer = steer; len(d.Grads) != 1 {
			t.Fatalf("%d gradients", len(d.Grads))
		}
		if err := d.Begin(state); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Step(tokens, nil, 0.1, 1, 1); err != nil {
			t.Fatal(err)
		}
		var all []*tensor.Tensor
		for _, x := range state {
			all = append(all, tensor.New(x.Shape))
		}
		if err := d.State(all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	plain := end(nil)
	steer := tensor.New(plain[1].Shape)
	steer.F32()[3] = 2
	steered := end([]*tensor.Tensor{steer})
	for i, x := range plain {
		if same := x.Root() == state[i].Root(); same == in(names[i]) {
			t.Errorf("%s: it stays as it is: %v", names[i], same)
		}
	}
	for k, x := range steered[1].F32() {
		want := plain[1].F32()[k]
		if k == 3 {
			want -= 0.2
		}
		if math.Abs(float64(x-want)) > 1e-6 {
			t.Errorf("element %d is %v, wanted %v", k, x, want)
		}
	}
}
