package outer

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/data/source"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

// school is a small model and a text. A job of it is a specification and an inner optimizer.
type school struct {
	config architecture.Config
	corpus *data.Corpus
}

func newSchool(t *testing.T) school {
	t.Helper()
	c, err1 := architecture.Parse("gpt2", map[string]any{"n_layer": 1, "n_embd": 16, "n_head": 2, "n_positions": 12,
		"vocab_size": 256})
	text := strings.Repeat("the quick brown fox jumps over the lazy dog; ", 200)
	corpus, err2 := data.Build([]source.File{{Format: "text", Name: "fox", Data: []byte(text)}}, tokenizer.Bytes(), 0.1)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	return school{c, corpus}
}

// train runs a job to its end.
func (s school) train(t *testing.T, spec train.Spec, o optimizer.AdamW) *train.Checkpoint {
	t.Helper()
	spec.Version, spec.Numerics, spec.Seed, spec.Batch, spec.Length = 1, kernel.Version1, 7, 2, 12
	spec.Rate = train.Rate{Kind: train.Cosine, Peak: 1e-2, Warmup: 2, Floor: 0.1}
	step, err := model.TrainStep(s.config, o, 2, 12)
	if err != nil {
		t.Fatal(err)
	}
	exec, err := cpu.Compile(step, 1)
	if err != nil {
		t.Fatal(err)
	}
	spec.Program, spec.Data = step.Digest(), s.corpus.Manifest(1<<20).Digest()
	if err := errors.Join(spec.Check(), Check(spec.Exchange), train.CheckProgram(&spec, step)); err != nil {
		t.Fatal(err)
	}
	task := &train.Task{Spec: &spec, Step: step, Exec: exec, Corpus: s.corpus}
	c, err := Genesis(spec.Exchange, train.Params(step), s.config.Init(7))
	if err != nil {
		t.Fatal(err)
	}
	for range spec.Rounds {
		deltas := make([][]*tensor.Tensor, spec.Units)
		for u := range deltas {
			r, err := task.Run(c, uint32(u), nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			deltas[u] = r.Delta
		}
		if c, err = Advance(&spec, c, deltas); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// A round of gradients is a step of AdamW: one worker whose steps everybody takes is one that takes them itself, but
// for the last bits of gradients.
func TestGradientsAreDataParallelTraining(t *testing.T) {
	s := newSchool(t)
	const steps = 20
	alone := s.train(t, train.Spec{
		Rounds: 1, Steps: steps, Segment: steps, Units: 1, Beta1: 0.9, Beta2: 0.95,
		Exchange: train.Exchange{Codec: codec.Float32, Rule: aggregate.Mean, Outer: SGD, Rate: 1},
	}, optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1})
	x := train.Exchange{
		Codec: codec.Float32, Rule: aggregate.Mean, Outer: DecoupledAdam, Rate: 1,
		Momentum: 0.9, Decay: 0.95, Eps: 1e-8, Gradients: true, WeightDecay: 0.1, Clip: 1,
	}
	together := s.train(t, train.Spec{Rounds: steps, Steps: 1, Segment: 1, Units: 1, Exchange: x}, optimizer.Descent)
	var apart, moved float64
	begin := s.config.Init(7)
	for i, p := range alone.Params {
		for k, a := range p.F32() {
			apart = max(apart, math.Abs(float64(a-together.Params[i].F32()[k])))
			moved = max(moved, math.Abs(float64(a-begin[alone.Names[i]].F32()[k])))
		}
	}
	if moved < 0.05 || apart > moved/1000 {
		t.Errorf("weights are up to %v apart, and moved by up to %v", apart, moved)
	}
	two := s.train(t, train.Spec{Rounds: 2, Steps: 1, Segment: 1, Units: 2, Exchange: x}, optimizer.Descent)
	if two.Round != 2 || len(two.Outer) != 2 {
		t.Errorf("two workers end after %d rounds with %d tensors of state", two.Round, len(two.Outer))
	}
}

// The combined update is clipped as a whole, only matrices decay, and the rate is that of the schedule.
func TestStepOfARoundOfGradients(t *testing.T) {
	s := spec(1, SignSGD, 0.5, 0)
	s.Rounds, s.Steps = 4, 1
	s.Rate = train.Rate{Kind: train.Constant, Peak: 0.25, Warmup: 2}
	s.Exchange.Gradients, s.Exchange.WeightDecay = true, 0.5
	c := &train.Checkpoint{Names: []string{"v", "w"},
		Params: []*tensor.Tensor{tensor.FromF32([]float32{1, 1, 1}, 3), tensor.FromF32([]float32{1, 1}, 2, 1)}}
	next,
		err := Advance(s, c, [][]*tensor.Tensor{{tensor.FromF32([]float32{7, -1, 0}, 3),
		tensor.FromF32([]float32{0, 3}, 2, 1)}})
	if err != nil {
		t.Fatal(err)
	}
	const lr = 0.5 * 0.125 // the first of two steps of warm-up
	for i, want := range [][]float32{{1 - lr, 1 + lr, 1}, {1 - lr/2, 1 - lr - lr/2}} {
		for k, x := range next.Params[i].F32() {
			if x != want[k] {
				t.Errorf("element %d of parameter %d is %v, want %v", k, i, x, want[k])
			}
		}
	}

	s = spec(1, DecoupledAdam, 1, 0)
	s.Rounds, s.Rate = 1, train.Rate{Kind: train.Constant, Peak: 1}
	s.Exchange.Gradients, s.Exchange.Eps, s.Exchange.Clip = true, 1, 5
	c = &train.Checkpoint{Names: []string{"v", "w"}, Params: []*tensor.Tensor{one(0), one(0)},
		Outer: train.Zeros([]*tensor.Tensor{one(0), one(0)}, 2)}
	next, err = Advance(s, c, [][]*tensor.Tensor{{one(30 * train.GradientScale), one(40 * train.GradientScale)}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{3, 4} { // of norm 50
		if got := float64(next.Outer[0][i].F32()[0]); math.Abs(got-want) > 1e-6 {
			t.Errorf("gradient %d is clipped to %v, want %v", i, got, want)
		}
	}
}

// Gradients are for optimizers that take the steps, and those for nothing else.
func TestGradientsNeedTheirOptimizer(t *testing.T) {
	for name, takes := range map[string]bool{SGD: false, Nesterov: false, Adam: false, Yogi: false, DecoupledAdam: true,
		SignSGD: true} {
		x := spec(1, name, 1, 0).Exchange
		for _, x.Gradients = range []bool{false, true} {
			if err := Check(x); (err == nil) != (x.Gradients == takes) {
				t.Errorf("%s, gradients %t: %v", name, x.Gradients, err)
			}
		}
	}
	s := &train.Spec{Version: 1, Numerics: kernel.Version1, Rounds: 1, Steps: 2, Segment: 1, Units: 1, Batch: 1, Length: 1,
		Rate: train.Rate{Kind: train.Constant}}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if s.Exchange.Gradients = true; s.Check() == nil {
		t.Error("a gradient of two steps is taken")
	}
}
