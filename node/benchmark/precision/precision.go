// Package precision measures how the evaluation loss of a small language model depends on the numbers that its layers
// multiply: float32, or integers of 15 or 8 bits with a common exponent (training.precision of a job). It measures no
// speed.
package precision

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/machine"
)

// Options say what is trained.
type Options struct {
	Data     string // file of text, whose bytes are the tokens; its last tenth is held out
	Seeds    int
	Steps    int
	Threads  int
	Progress func(string)
}

// The model and its batches: GPT-2 of 4 layers of width 64, 2,048 tokens a step.
const (
	length    = 64
	sequences = 32
	windows   = 256 // held-out sequences, the same for all
	rate      = 4e-3
	warmup    = 100
)

// Precisions by the words of training.precision; those that exact.Forms lacks are of float32.
var precisions = []struct {
	name string
	bar  float64 // nats that its loss may be above that of float32; 0: none
}{{"fp32", 0}, {"exact15", 0.003}, {"exact8", 0.02}}

// Run is a model that was trained.
type Run struct {
	Precision string  `json:"precision"`
	Seed      uint64  `json:"seed"`
	Loss      float64 `json:"loss"` // nats a byte of the held-out sequences
	Seconds   float64 `json:"seconds"`
}

// Report is all runs, and how far the mean losses are from that of float32.
type Report struct {
	Parameters int                `json:"parameters"`
	Steps      int                `json:"steps"`
	Runs       []Run              `json:"runs"`
	Mean       map[string]float64 `json:"mean"` // loss, by precision
	Bars       []benchmark.Bar    `json:"bars"`
}

// Measure trains a model for each seed and precision. Models of one seed begin with the same weights, and see the same
// sequences.
func Measure(ctx context.Context, o Options) (*Report, error) {
	for name, n := range map[string]int{"threads": o.Threads, "steps": o.Steps, "seeds": o.Seeds} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	text, err := os.ReadFile(o.Data)
	if err != nil {
		return nil, benchmark.Unusable(o.Data, err)
	}
	if len(text) < 100*length {
		return nil, benchmark.Unusable(o.Data, errors.New("the text is too short to hold a tenth of it out"))
	}
	c, err := architecture.Parse(architecture.GPT2,
		map[string]any{"n_layer": 4, "n_embd": 64, "n_head": 4, "n_positions": length, "vocab_size": 256})
	if err != nil {
		return nil, err
	}
	r := &Report{Parameters: c.Parameters(), Steps: o.Steps, Mean: map[string]float64{}}
	for seed := range uint64(o.Seeds) {
		for _, f := range precisions {
			began := time.Now()
			loss, err := learn(ctx, c, exact.Forms[f.name], seed, text, o)
			if err != nil {
				return nil, err
			}
			r.Runs = append(r.Runs, Run{f.name, seed, benchmark.Rounded(loss, 5),
				benchmark.Rounded(time.Since(began).Seconds(), 1)})
			r.Mean[f.name] += loss / float64(o.Seeds)
			o.Progress(fmt.Sprintf("seed %d, %s: loss %.4f after %.0f s", seed, f.name, loss, time.Since(began).Seconds()))
		}
	}
	for _, f := range precisions[1:] {
		r.Bars = append(r.Bars, benchmark.AtMost("mean loss of "+f.name+" above that of fp32, nats",
			math.Ceil(1e5*(r.Mean[f.name]-r.Mean["fp32"]))/1e5, f.bar))
	}
	for name := range r.Mean {
		r.Mean[name] = benchmark.Rounded(r.Mean[name], 5)
	}
	return r, nil
}

// learn trains a model, and returns its loss on the held-out sequences.
func learn(ctx context.Context, c architecture.Config, f exact.Form, seed uint64, text []byte,
	o Options) (float64, error) {
	task, err := model.LanguageOf(c, model.Batch{Sequences: sequences, Length: length, Form: f})
	if err != nil {
		return 0, err
	}
	adamW := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 1}
	step, err := task.TrainStep(adamW)
	if err != nil {
		return 0, err
	}
	weights := c.Init(seed)
	t, err := machine.ProgramTrainer(step, machine.Recipe{Optimizer: adamW, Rate: rate, Threads: o.Threads}, weights)
	if err != nil {
		return 0, err
	}
	t.Spec.Seed, t.Spec.Units, t.Spec.Steps = seed, 1, uint32(o.Steps)
	t.Spec.Rate.Kind, t.Spec.Rate.Warmup, t.Spec.Rate.Floor = train.Cosine, uint32(min(warmup, o.Steps/4)), 0.1
	held := len(text) - len(text)/10
	drawn := philox.New(seed, 1)
	for range o.Steps {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		for rows := t.Tokens(); len(rows) > 0; rows = rows[length+1:] {
			fill(rows[:length+1], text[drawn.Uint64n(uint64(held-length)):])
		}
		if _, err := t.Step(); err != nil {
			return 0, err
		}
	}
	for name := range weights {
		weights[name] = t.In[train.Param+name]
	}
	return evaluate(task, weights, text[held:], o.Threads)
}

// evaluate is the mean loss of sequences at equal distances.
func evaluate(task model.Task, weights map[string]*tensor.Tensor, text []byte, threads int) (float64, error) {
	p, err := task.Eval()
	if err != nil {
		return 0, err
	}
	x, err := cpu.Compile(p, threads)
	if err != nil {
		return 0, err
	}
	in := map[string]*tensor.Tensor{"tokens": tensor.New(tensor.Make(tensor.Int32, sequences, length+1))}
	for name, w := range weights {
		in[train.Param+name] = w
	}
	sum := 0.
	for batch := range windows / sequences {
		rows := in["tokens"].I32()
		for i := range sequences {
			at := (batch*sequences + i) * (len(text) - length - 1) / windows
			fill(rows[i*(length+1):][:length+1], text[at:])
		}
		out, err := x.Run(in)
		if err != nil {
			return 0, err
		}
		sum += float64(out["loss"].F32()[0])
	}
	return sum / (windows / sequences), nil
}

// fill takes the first bytes of a text as tokens.
func fill(tokens []int32, text []byte) {
	for i := range tokens {
		tokens[i] = int32(text[i])
	}
}
