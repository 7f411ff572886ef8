package dpsgd

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/picture"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/descent"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/prg"
)

// images are rows of a class and four pixels.
type images [][5]int32

func (x images) Len() int                { return len(x) }
func (x images) Row(i int, into []int32) { copy(into, x[i][:]) }

// step is that of a network on one image, and the state that it begins with.
func step(t *testing.T, o optimizer.Optimizer) (*program.Program, []*tensor.Tensor) {
	t.Helper()
	v, err := vision.Parse(vision.MLP, map[string]any{"hidden_sizes": []any{3}}, picture.Size{Rows: 2, Columns: 2,
		Channels: 1}, []string{"a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	task, err := model.Classify(v, model.Batch{Sequences: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, err := task.TrainStep(o)
	if err != nil {
		t.Fatal(err)
	}
	first, shapes := architecture.Init(v.Tensors(), 1), p.InputShapes()
	var state []*tensor.Tensor
	for _, n := range train.Params(p) {
		state = append(state, first[n])
	}
	for _, n := range train.Moments(p) {
		state = append(state, tensor.New(shapes[n]))
	}
	return p, state
}

// made is the trainer of a program.
func made(p *program.Program, o optimizer.Optimizer, t Terms, x Examples, seed prg.Key) (*Trainer, error) {
	steps, err := descent.New(p, o, nil, nil, 1)
	if err != nil {
		return nil, err
	}
	return New(steps, t, x, seed)
}

// end is the state after steps of a trainer.
func end(t *testing.T, o optimizer.Optimizer, terms Terms, x Examples, seed byte, steps int) (all []float64) {
	t.Helper()
	p, state := step(t, o)
	trainer, err := made(p, o, terms, x, prg.Key{seed})
	if err != nil {
		t.Fatal(err)
	}
	if err := trainer.Begin(state); err != nil {
		t.Fatal(err)
	}
	for range steps {
		if _, err := trainer.Step(nil, nil, 0.1, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := trainer.State(state); err != nil {
		t.Fatal(err)
	}
	for _, x := range state {
		for _, v := range x.F32() {
			all = append(all, float64(v))
		}
	}
	return all
}

func distance(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return math.Sqrt(sum)
}

var some = images{{0, 255, 10, 3, 250}, {1, 9, 200, 255, 1}, {0, 240, 3, 60, 255}, {1, 0, 255, 200, 9}}

// Without noise, and where nothing is clipped, a step on all examples is that of the program on their mean gradient.
func TestStepWithoutNoiseIsThatOfTheProgram(t *testing.T) {
	for _, o := range []optimizer.Optimizer{optimizer.SGD{}, optimizer.AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8}} {
		p, state := step(t, o)
		before := end(t, o, Terms{Clip: 1e3, Lot: 1}, some[:1], 1, 0)
		in := map[string]*tensor.Tensor{"lr": tensor.Scalar(0.1), "c1": tensor.Scalar(1), "c2": tensor.Scalar(1),
			"tokens": tensor.FromI32([]int32{some[0][0], some[0][1], some[0][2], some[0][3], some[0][4], 0}, 1, 6)}
		for i, n := range train.StateNames(p) {
			in[n] = state[i]
		}
		got := end(t, o, Terms{Clip: 1e3, Lot: 1}, some[:1], 1, 1)
		exec, err := cpu.Compile(p, 1)
		if err != nil {
			t.Fatal(err)
		}
		out, err := exec.Run(in)
		if err != nil {
			t.Fatal(err)
		}
		var want []float64
		for _, n := range train.StateNames(p) {
			for _, v := range out[n].F32() {
				want = append(want, float64(v))
			}
		}
		if d, moved := distance(got, want), distance(before, want); d > 1e-3*moved || moved == 0 {
			t.Errorf("%T: %v away after %v", o, d, moved)
		}
	}
}

// One example more or less moves a step by no more than the clipping norm, whatever it contains.
func TestOneExampleIsBounded(t *testing.T) {
	terms := Terms{Clip: 0.01, Lot: 4}
	with := end(t, optimizer.SGD{}, terms, some, 1, 1)
	for i := range some {
		without := end(t, optimizer.SGD{}, terms, slices.Concat(some[:i], some[i+1:]), 1, 1)
		if d := distance(with, without); d > 0.1*0.01/4*1.001 || d < 0.1*0.01/4*0.9 {
			t.Errorf("without example %d: %v", i, d)
		}
	}
}

// Steps have the noise that is asked for, other in each step, and the same seed gives the same bits.
func TestNoiseOfSteps(t *testing.T) {
	quiet, loud := Terms{Clip: 1e-4, Lot: 2}, Terms{Clip: 1e-4, Noise: 3, Lot: 2}
	const steps = 400
	a, b := end(t, optimizer.SGD{}, loud, some, 1, steps), end(t, optimizer.SGD{}, loud, some, 1, steps)
	if !slices.Equal(a, b) {
		t.Error("the same seed gives other bits")
	}
	plain := end(t, optimizer.SGD{}, quiet, some, 1, steps)
	// a sum of noises of 0.1·1e-4·3/2 in each of the weights
	want := 0.1 * 1e-4 * 3 / 2 * math.Sqrt(steps*float64(len(a)))
	if d := distance(a, plain); d < 0.7*want || d > 1.4*want {
		t.Errorf("noise of %v, wanted about %v", d, want)
	}
}

// Examples are drawn independently, with the rate of the terms.
func TestExamplesAreDrawn(t *testing.T) {
	many := make(images, 1000)
	p, state := step(t, optimizer.SGD{})
	x, err := made(p, optimizer.SGD{}, Terms{Clip: 1, Lot: 100}, counted{many, new(int)}, prg.Key{3})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Begin(state); err != nil {
		t.Fatal(err)
	}
	read := x.examples.(counted).read
	var sizes []float64
	for range 100 {
		*read = 0
		if _, err := x.Step(nil, nil, 0, 1, 1); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, float64(*read))
	}
	mean, square := 0.0, 0.0
	for _, s := range sizes {
		mean, square = mean+s/100, square+s*s/100
	}
	if math.Abs(mean-100) > 4 || math.Abs(square-mean*mean-90) > 45 { // binomial: 100 and 90
		t.Errorf("a mean of %v examples, with variance %v", mean, square-mean*mean)
	}
}

// counted counts the rows that are read.
type counted struct {
	images
	read *int
}

func (c counted) Row(i int, into []int32) {
	*c.read++
	c.images.Row(i, into)
}

func TestTermsThatAreRefused(t *testing.T) {
	p, _ := step(t, optimizer.SGD{})
	for _, terms := range []Terms{{Clip: 0, Lot: 1}, {Clip: math.Inf(1), Lot: 1}, {Clip: 1, Lot: 0}, {Clip: 1, Lot: 1,
		Noise: -1}, {Clip: 1, Lot: 1, Noise: 5}, {Clip: 1, Lot: 1, Noise: math.NaN()}} {
		if _, err := made(p, optimizer.SGD{}, terms, some, prg.Key{}); !errors.Is(err, ErrTerms) {
			t.Errorf("%+v: %v", terms, err)
		}
	}
	if _, err := made(p.Only("loss", "grad_norm"), optimizer.SGD{}, Terms{Clip: 1, Lot: 1}, some,
		prg.Key{}); !errors.Is(err, parts.ErrGradients) {
		t.Errorf("a program that trains nothing: %v", err)
	}
	if _, err := made(p, optimizer.SGD{}, Terms{Clip: 1, Lot: 1}, images{}, prg.Key{}); !errors.Is(err, ErrTerms) {
		t.Errorf("no examples: %v", err)
	}
}

// A gradient that is not finite counts nothing, so that it neither ends a unit nor tells of its example.
func TestGradientThatIsNotFinite(t *testing.T) {
	p, state := step(t, optimizer.SGD{})
	for _, t := range state {
		for i := range t.F32() {
			t.F32()[i] = float32(math.NaN())
		}
	}
	x, err := made(p, optimizer.SGD{}, Terms{Clip: 1, Lot: 1}, some, prg.Key{})
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Begin(state); err != nil {
		t.Fatal(err)
	}
	if _, err := x.drawn(nil); err != nil || slices.ContainsFunc(x.sum, func(v int64) bool { return v != 0 }) {
		t.Errorf("%v, %v", x.sum, err)
	}
}
