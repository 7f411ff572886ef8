// Package skipping measures models of whose stages each microbatch leaves out some: the loss, and the exact length of a
// step, compared with models whose microbatches pass all stages. It is a part of starling bench pipeline.
package skipping

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/stages/pass"
	"github.com/starling-network/starling/compute/stages/paths"
	"github.com/starling-network/starling/compute/stages/skipping"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/sentences"
	"github.com/starling-network/starling/node/pretrained"
)

// Setting is a model whose microbatches leave out stages, and how it compares with one whose microbatches pass all.
type Setting struct {
	Stages       int       `json:"stages"`
	Microbatches int       `json:"microbatches"`
	Share        float64   `json:"share"`  // of the stages that a microbatch leaves out
	Layers       float64   `json:"layers"` // share of the operations of forwards and backwards that is left out
	InFlight     int       `json:"in_flight"`
	Memory       float64   `json:"memory"` // of the largest stage, of that where none is left out
	Faster       []float64 `json:"faster"` // by Paces, and last without latency: steps in the time of one that skips none

	Steps int     `json:"steps,omitempty"` // of training; 0: it was not trained
	Loss  float64 `json:"loss,omitempty"`  // of the whole model on text that it has not read, nats a token
	Gap   float64 `json:"gap,omitempty"`   // by which it is above that of the other

	// of the model whose microbatches leave out stages, and of the other: with all layers, and then without those of each
	// stage that microbatches leave out, in turn, on text that neither has read
	Perplexity []float64 `json:"perplexity,omitempty"`
	Plain      []float64 `json:"plain,omitempty"`

	layers int
}

// settings are those that are measured. Models of the first ones are trained, too.
var settings = []Setting{{Stages: 4, Microbatches: 10, Share: 0.2, layers: 12},
	{Stages: 4, Microbatches: 8, Share: 0.25, layers: 12}, {Stages: 8, Microbatches: 12, Share: 0.25, layers: 22}}

const trained = 2

// Paces are the milliseconds that a stage takes for a microbatch, on average, where no stage is left out.
var Paces = []float64{30, 75, 150, 300, 1200}

const (
	latency  = 100.0 // milliseconds from one stage to another
	barPace  = 2     // the place in Paces of the one that has a bar
	leastBar = 1.3
	mostGap  = 0.03

	lossSteps = 400 // from so many steps on losses are compared
)

// Measure measures all settings, and trains models for some steps.
func Measure(ctx context.Context, steps, threads int) (list []Setting, err error) {
	for i, s := range settings {
		all, err := made(s, 0)
		if err != nil {
			return nil, err
		}
		some, err := made(s, s.Share)
		if err != nil {
			return nil, err
		}
		if err = errors.Join(s.compare(all, some), ctx.Err()); err != nil {
			return nil, err
		}
		if i < trained {
			if err := s.train(ctx, all, some, steps, threads); err != nil {
				return nil, err
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// Bars are those of the first setting, in which a quarter of the operations is left out.
func Bars(list []Setting) []benchmark.Bar {
	bars := []benchmark.Bar{benchmark.AtLeast(
		"times the throughput of 1F1B, where a quarter of the layers is left out, at 100 ms and 150 ms a microbatch",
		list[0].Faster[barPace], leastBar)}
	if list[0].Steps >= lossSteps {
		bars = append(bars, benchmark.AtMost(
			"loss of a model trained with a quarter of the layers left out, above that of one trained with all",
			list[0].Gap, mostGap), benchmark.AtMost(
			"perplexity of a model trained with a quarter of the layers left out, without one of its stages, of that with all",
			benchmark.Rounded(slices.Max(list[0].Perplexity[1:])/list[0].Perplexity[0], 4), 1+mostGap))
	}
	return bars
}

// job is a model that is cut into stages.
type job struct {
	config architecture.Config
	step   *program.Program
	plan   *stages.Plan
	before []int // groups of layers, before which it is cut
}

// width, in elements and in tokens of a sequence.
const width = 32

// made is the model of a setting whose microbatches, of one sequence, leave out a share of the stages.
func made(s Setting, share float64) (j job, err error) {
	if j.config, err = architecture.Parse(architecture.Llama, map[string]any{"num_hidden_layers": s.layers,
		"hidden_size": width, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 3 * width,
		"max_position_embeddings": width, "vocab_size": 256}); err != nil {
		return j, err
	}
	task, err := model.LanguageOf(j.config, model.Batch{Sequences: s.Microbatches, Length: width, Micro: 1})
	if err != nil {
		return j, err
	}
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 0.5}
	if j.step, err = task.TrainStep(o); err != nil {
		return j, err
	}
	costs, err := stages.Costs(j.step)
	if err != nil {
		return j, err
	}
	before, err := stages.Balance(costs, slices.Repeat([]int{1}, s.Stages))
	if share > 0 {
		j.step, before, err = skipping.Step(j.config, task, o, costs, s.Stages, s.Microbatches, share)
	}
	if err != nil {
		return j, err
	}
	j.before = before
	j.plan, err = stages.Cut(j.step, before)
	return j, err
}

// compare computes the figures that follow from both plans.
func (s *Setting) compare(all, some job) error {
	mean := all.work() / float64(s.Stages*s.Microbatches)
	s.Layers = benchmark.Rounded(1-some.work()/all.work(), 3)
	for i := range len(Paces) + 1 {
		each, away := 1/mean, 0.0
		if i < len(Paces) {
			each, away = Paces[i]/mean, latency
		}
		slow, err := all.length(each, away)
		if err != nil {
			return err
		}
		fast, err := some.length(each, away)
		if err != nil {
			return err
		}
		s.Faster = append(s.Faster, benchmark.Rounded(slow/fast, 3))
	}
	most, err := all.memory()
	if err != nil {
		return err
	}
	own, err := some.memory()
	s.Memory = benchmark.Rounded(float64(own)/float64(most), 3)
	s.InFlight = order.InFlight(some.plan.Orders()[0])
	return err
}

// operations are those of forwards and backwards, by task.
func (j job) operations() map[order.Place]float64 {
	all := map[order.Place]float64{}
	for s := range j.plan.Stages {
		for _, p := range j.plan.Stages[s].Pieces {
			if p.Phase == order.Forward || p.Phase == order.Backward {
				all[order.Place{Stage: s, Task: p.Task}] = float64(p.Program.Flops())
			}
		}
	}
	return all
}

// work is the number of all operations of forwards and backwards of a step.
func (j job) work() (all float64) {
	of := j.operations()
	for s, tasks := range j.plan.Tasks() {
		for _, t := range tasks {
			all += of[order.Place{Stage: s, Task: t}]
		}
	}
	return all
}

// length is the exact length of a step whose operations take a time each, over links with a latency.
func (j job) length(each, latency float64) (float64, error) {
	of := j.operations()
	ends, err := j.plan.Timed(1, func(at order.Place) float64 { return each * of[at] },
		func(_, _ order.Place) float64 { return latency })
	if err != nil {
		return 0, err
	}
	return slices.Max(ends), nil
}

// memory is the bytes that the largest stage takes.
func (j job) memory() (largest int64, err error) {
	for k, tasks := range j.plan.Orders() {
		shapes, state := j.plan.Stages[k].Whole.InputShapes(), []*tensor.Tensor(nil)
		for _, n := range j.plan.Stages[k].State {
			state = append(state, &tensor.Tensor{Shape: shapes[n]})
		}
		st, err := pass.New(j.plan, k, tasks, state, 1)
		if err != nil {
			return 0, err
		}
		largest = max(largest, st.Bytes())
	}
	return largest, nil
}

// train trains both models, each in one program, from the same weights and on the same tokens, and compares what they
// make of text that neither has read: with all layers, and without those of a stage.
func (s *Setting) train(ctx context.Context, all, some job, steps, threads int) error {
	ways, err := paths.Of(s.Stages, s.Microbatches, s.Share)
	if err != nil {
		return err
	}
	sets := [][]int{nil}
	for _, layers := range ways.Layers(some.before) {
		if !slices.ContainsFunc(sets, func(known []int) bool { return slices.Equal(known, layers) }) {
			sets = append(sets, layers)
		}
	}
	for _, x := range []struct {
		job  job
		into *[]float64
	}{{all, &s.Plain}, {some, &s.Perplexity}} {
		tensors, err := x.job.trained(ctx, steps, threads)
		if err != nil {
			return err
		}
		for _, left := range sets {
			c, rest := without(x.job.config, tensors, left)
			m := pretrained.Mixture{{Prior: 1,
				Model: &pretrained.Model{Config: c, Tensors: rest, Tokenizer: tokenizer.Bytes()}}}
			e, err := m.Evaluate(ctx, sentences.Ended(read + 300)[len(sentences.Ended(read)):], 0, threads)
			if err != nil {
				return err
			}
			*x.into = append(*x.into, benchmark.Rounded(e.Perplexity, 4))
		}
	}
	s.Steps, s.Loss = steps, benchmark.Rounded(math.Log(s.Perplexity[0]), 4)
	s.Gap = benchmark.Rounded(math.Log(s.Perplexity[0])/math.Log(s.Plain[0])-1, 4)
	return nil
}

// without is a model without some layers.
func without(c architecture.Config, tensors map[string]*tensor.Tensor, left []int) (architecture.Config,
	map[string]*tensor.Tensor) {
	rest := map[string]*tensor.Tensor{}
	for name, t := range tensors {
		if layer, ok := c.LayerOf(name); ok {
			at, found := slices.BinarySearch(left, layer)
			if found {
				continue
			}
			name = strings.Replace(name, fmt.Sprintf(".%d.", layer), fmt.Sprintf(".%d.", layer-at), 1)
		}
		rest[name] = t
	}
	c.Layers -= len(left)
	return c, rest
}

// read is the number of words that models learn from.
const read = 20000

// trained are the tensors of the model after some steps.
func (j job) trained(ctx context.Context, steps, threads int) (map[string]*tensor.Tensor, error) {
	exec, err := cpu.Compile(j.step, threads)
	if err != nil {
		return nil, err
	}
	in := map[string]*tensor.Tensor{}
	for _, i := range j.step.Inputs() {
		in[i.Name] = tensor.New(i.Shape)
	}
	tensors, text := j.config.Init(7), sentences.Ended(read)
	for name, t := range tensors {
		in[train.Param+name] = t
	}
	for k := range steps {
		tokens := in["tokens"].I32()
		for i := range tokens {
			tokens[i] = int32(text[(k*len(tokens)+i)%len(text)])
		}
		n := float64(k + 1)
		in["lr"].F32()[0] = float32(3e-3 * (1 - 0.9*n/float64(steps)))
		in["c1"].F32()[0], in["c2"].F32()[0] = float32(1/(1-math.Pow(0.9, n))), float32(1/(1-math.Pow(0.95, n)))
		out, err := exec.Run(in)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, fmt.Errorf("step %d: %w", k, err)
		}
		for name, t := range out {
			if _, ok := in[name]; ok {
				in[name] = t
			}
		}
	}
	for name := range tensors {
		tensors[name] = in[train.Param+name]
	}
	return tensors, nil
}
