package tokenloss

import (
	"errors"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/modeltest"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

type state = map[string]*tensor.Tensor

// models are a model of each family of networks, whole and with adapters.
func models(t testing.TB) map[string]architecture.Config {
	all := map[string]architecture.Config{}
	for name, raw := range map[string]map[string]any{architecture.GPT2: modeltest.GPT2(),
		architecture.Llama: modeltest.Llama()} {
		c, err := architecture.Parse(name, raw)
		if err != nil {
			t.Fatal(err)
		}
		adapted, err := c.Adapt(architecture.LoRA{Rank: 2, Alpha: 32, Targets: []string{architecture.AllLinear}})
		if err != nil {
			t.Fatal(err)
		}
		all[name], all[name+" adapted"] = c, adapted
	}
	return all
}

// random are tensors with values far from their initial ones, under "p/".
func random(c architecture.Config) state {
	in := state{}
	add := func(list []architecture.Named, stream uint64) {
		for i, n := range list {
			x := tensor.New(n.Shape)
			philox.NormalTo(x.F32(), stream, uint64(i))
			for j := range x.F32() {
				x.F32()[j] *= 0.3
			}
			in[optimizer.Param+n.Name] = x
		}
	}
	add(c.Tensors(), 2)
	add(c.Adapters(), 3)
	return in
}

func run(t testing.TB, p *program.Program, err error, in state) state {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	e, err := cpu.Compile(p, 2)
	if err != nil {
		t.Fatal(err)
	}
	given := state{}
	for _, i := range p.Inputs() {
		if given[i.Name] = in[i.Name]; in[i.Name] == nil {
			t.Fatalf("the test has no input %s", i.Name)
		}
	}
	out, err := e.Run(given)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// batch adds rows of tokens to the inputs, and what losses read.
func batch(c architecture.Config, in state, rows, length int) state {
	in = maps.Clone(in)
	tokens, targets := make([]int32, rows*length), make([]int32, rows*length)
	weight, sampled, advantage := make([]float32, rows*length), make([]float32, rows*length), make([]float32, rows*length)
	for i := range tokens {
		row, at := i/length, i%length
		tokens[i], targets[i] = int32((7*row+3*at+1)%c.VocabSize()), int32((5*row+2*at)%c.VocabSize())
		weight[i], sampled[i] = 0.25+float32(at%3), -2-float32(at%4)/2
		advantage[i] = float32(at%5) - 1.7
	}
	in[Tokens], in[Targets] = tensor.FromI32(tokens, rows, length), tensor.FromI32(targets, rows, length)
	in[Weights], in[Sampled] = tensor.FromF32(weight, rows, length), tensor.FromF32(sampled, rows, length)
	in[Advantages] = tensor.FromF32(advantage, rows, length)
	for _, n := range Trained(c) {
		in[Gradient+n.Name] = tensor.New(n.Shape)
	}
	return in
}

var functions = []Function{{}, {Kind: ImportanceSampling}, {Kind: Proximal, Low: 0.8, High: 1.2}}

// TestSameBits: a log-probability does not depend on the program, the other rows and the padding.
func TestSameBits(t *testing.T) {
	for name, c := range models(t) {
		in := batch(c, random(c), 3, 6)
		p, err := Forward(c, 3, 6)
		want := run(t, p, err, in)[LogProbs].F32()
		for _, f := range functions {
			p, err := Backward(c, f, 3, 6)
			if got := run(t, p, err, in)[LogProbs].F32(); !slices.Equal(got, want) {
				t.Errorf("%s: %+v has other log-probabilities", name, f)
			}
		}
		one := maps.Clone(in)
		tokens, targets := make([]int32, 8), make([]int32, 8)
		copy(tokens, in[Tokens].I32()[6:12])
		copy(targets, in[Targets].I32()[6:12])
		tokens[6], targets[7] = 3, 1
		one[Tokens], one[Targets] = tensor.FromI32(tokens, 1, 8), tensor.FromI32(targets, 1, 8)
		p, err = Forward(c, 1, 8)
		if got := run(t, p, err, one)[LogProbs].F32()[:6]; !slices.Equal(got, want[6:12]) {
			t.Errorf("%s: the second row alone, with padding, has %v, want %v", name, got, want[6:12])
		}
	}
}

// value is a loss by its formula, from log-probabilities.
func (f Function) value(in state, logprobs []float32) (sum float64) {
	for i, l := range logprobs {
		w, s, a := float64(in[Weights].F32()[i]), float64(in[Sampled].F32()[i]), float64(in[Advantages].F32()[i])
		r := math.Exp(float64(l) - s)
		switch f.Kind {
		case CrossEntropy:
			sum -= w * float64(l)
		case ImportanceSampling:
			sum -= w * a * r
		case Proximal:
			sum -= w * min(a*r, a*min(max(r, f.Low), f.High))
		}
	}
	return sum
}

// TestGradients compares losses with their formulas, and gradients with slopes along themselves.
func TestGradients(t *testing.T) {
	for name, c := range models(t) {
		for _, f := range functions {
			in := batch(c, random(c), 2, 5)
			p, err := Backward(c, f, 2, 5)
			out := run(t, p, err, in)
			if got, want := float64(out[Loss].F32()[0]), f.value(in, out[LogProbs].F32()); math.Abs(got-want) > 1e-3 {
				t.Errorf("%s %+v: loss %v, want %v", name, f, got, want)
			}
			norm := 0.0
			for _, n := range Trained(c) {
				for _, g := range out[Gradient+n.Name].F32() {
					norm += float64(g) * float64(g)
				}
			}
			norm = math.Sqrt(norm)
			forward, err := Forward(c, 2, 5)
			at := func(step float64) float64 {
				moved := maps.Clone(in)
				for _, n := range Trained(c) {
					x := tensor.New(n.Shape)
					for i, g := range out[Gradient+n.Name].F32() {
						x.F32()[i] = float32(float64(in[optimizer.Param+n.Name].F32()[i]) + step*float64(g)/norm)
					}
					moved[optimizer.Param+n.Name] = x
				}
				return f.value(in, run(t, forward, err, moved)[LogProbs].F32())
			}
			const h = 4e-3
			wide, narrow := (at(h)-at(-h))/(2*h), (at(h/2)-at(-h/2))/h
			if slope := (4*narrow - wide) / 3; math.Abs(slope-norm) > 0.02*norm {
				t.Errorf("%s %+v: slope %v along a gradient of norm %v", name, f, slope, norm)
			}
			// a second batch is added
			again := maps.Clone(in)
			for _, n := range Trained(c) {
				again[Gradient+n.Name] = out[Gradient+n.Name]
			}
			twice := run(t, p, nil, again)
			for _, n := range Trained(c) {
				for i, g := range twice[Gradient+n.Name].F32() {
					if g != 2*out[Gradient+n.Name].F32()[i] {
						t.Fatalf("%s %+v: %s is not twice the gradient", name, f, n.Name)
					}
				}
			}
		}
	}
}

// TestClippedRatios: a ratio that overflows and is clipped has no gradient, and a negative weight clips the same side.
func TestClippedRatios(t *testing.T) {
	c := models(t)[architecture.Llama]
	f := Function{Kind: Proximal, Low: 0.8, High: 1.2}
	in := batch(c, random(c), 2, 5)
	for i := range 10 {
		in[Weights].F32()[i], in[Sampled].F32()[i], in[Advantages].F32()[i] = float32(1-i%3), -300, 2
	}
	p, err := Backward(c, f, 2, 5)
	out := run(t, p, err, in)
	if got, want := float64(out[Loss].F32()[0]), f.value(in, out[LogProbs].F32()); math.Abs(got-want) > 1e-3 {
		t.Errorf("loss %v, want %v", got, want)
	}
	for _, n := range Trained(c) {
		for i, g := range out[Gradient+n.Name].F32() {
			if g != 0 {
				t.Fatalf("gradient %d of %s is %v", i, n.Name, g)
			}
		}
	}
	for i := range 10 { // ratios on both sides of 1, with weights and advantages of either sign
		in[Weights].F32()[i], in[Sampled].F32()[i] = float32(1-2*(i%2)), out[LogProbs].F32()[i]+float32(i-5)/5
		in[Advantages].F32()[i] = float32(1 - i%4)
	}
	out = run(t, p, nil, in)
	if got, want := float64(out[Loss].F32()[0]), f.value(in, out[LogProbs].F32()); math.Abs(got-want) > 1e-3 {
		t.Errorf("loss %v of weights of either sign, want %v", got, want)
	}
}

// TestUpdate compares a step with AdamW's formula.
func TestUpdate(t *testing.T) {
	c := models(t)[architecture.Llama]
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-12, WeightDecay: 0.01, DecayAll: true}
	p, err := Update(c, o)
	in := random(c)
	in["lr"], in["c1"], in["c2"] = tensor.Scalar(0.1), tensor.Scalar(10), tensor.Scalar(20)
	for _, n := range Trained(c) {
		in[Gradient+n.Name] = tensor.New(n.Shape)
		philox.NormalTo(in[Gradient+n.Name].F32(), 9, 1)
		in[optimizer.First+n.Name], in[optimizer.Second+n.Name] = tensor.New(n.Shape), tensor.New(n.Shape)
	}
	out := run(t, p, err, in)
	for _, n := range Trained(c) {
		for i, x := range out[optimizer.Param+n.Name].F32() {
			was, g := float64(in[optimizer.Param+n.Name].F32()[i]), float64(in[Gradient+n.Name].F32()[i])
			want := was - 0.1*(g/math.Abs(g)+0.01*was)
			if math.Abs(float64(x)-want) > 1e-4 {
				t.Fatalf("%s: %v became %v, want %v", n.Name, was, x, want)
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	c := models(t)[architecture.GPT2]
	for _, f := range []Function{{Kind: 3}, {Low: 1}, {Kind: Proximal, Low: 2, High: 3},
		{Kind: Proximal, Low: math.NaN()}} {
		if _, err := Backward(c, f, 1, 1); !errors.Is(err, ErrLoss) {
			t.Errorf("%+v: %v", f, err)
		}
	}
	for _, size := range [][2]int{{0, 1}, {1, 0}, {1, c.Context() + 1}, {math.MaxInt, 2}} {
		if _, err := Forward(c, size[0], size[1]); !errors.Is(err, ErrLoss) {
			t.Errorf("%v: %v", size, err)
		}
	}
	if _, err := Update(c, optimizer.AdamW{Beta1: 1, Eps: 1}); !errors.Is(err, ErrLoss) {
		t.Error(err)
	}
}
