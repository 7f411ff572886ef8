package pipeline

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/data/tokenizer"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/pretrained"
)

// Skip is a model of whose stages each microbatch leaves out some, and how it compares with one whose microbatches pass
// all.
type Skip struct {
	Stages       int       `json:"stages"`
	Microbatches int       `json:"microbatches"`
	Share        float64   `json:"share"`  // of the stages that a microbatch leaves out
	Layers       float64   `json:"layers"` // share of the operations of forwards and backwards that is left out
	InFlight     int       `json:"in_flight"`
	Memory       float64   `json:"memory"` // of the largest stage, of that where none is left out
	Faster       []float64 `json:"faster"` // by Pace, and last without latency: steps in the time of one that leaves out none

	Steps  int     `json:"steps,omitempty"` // of training; 0: it was not trained
	Loss   float64 `json:"loss,omitempty"`  // of the whole model on text that it has not read, nats a token
	Gap    float64 `json:"gap,omitempty"`   // by which it is above that of the other
	Differ int     `json:"differ"`          // tensors of the last state with other bits than those of one program
}

// The measured settings. Models of the first two are trained, too.
var skips = []struct {
	stages, layers, microbatches int
	share                        float64
}{{4, 12, 10, 0.2}, {4, 12, 8, 0.25}, {8, 22, 12, 0.25}}

const (
	leastSkipped = 1.3
	mostSkipGap  = 0.03
)

// skipped compares models whose microbatches leave out stages with such that pass all.
func skipped(ctx context.Context, steps, threads int) (list []Skip, err error) {
	for i, c := range skips {
		z := size{family: "llama", layers: c.layers, width: 32, length: 32, sequences: c.microbatches, microbatch: 1,
			text: sentences(20000), steps: min(steps, 2)}
		s := Skip{Stages: c.stages, Microbatches: c.microbatches, Share: c.share}
		all, err := newJob(z, c.stages, threads)
		if err != nil {
			return nil, err
		}
		z.skip = c.share
		some, err := newJob(z, c.stages, threads)
		if err != nil {
			return nil, err
		}
		if err = errors.Join(s.compare(all, some), ctx.Err()); err != nil {
			return nil, err
		}
		s.InFlight = some.inFlight(some.plan.Orders()[0])
		if i == 0 {
			cut, err := compare(z, c.stages, threads)
			if err != nil {
				return nil, err
			}
			s.Differ = cut.Differ
		}
		if i < 2 {
			if err := s.train(ctx, z, steps, threads); err != nil {
				return nil, err
			}
		}
		list = append(list, s)
	}
	return list, nil
}

// compare computes the figures that follow from both plans.
func (s *Skip) compare(all, some *job) error {
	mean := all.work() / float64(s.Stages*s.Microbatches)
	s.Layers = benchmark.Rounded(1-some.work()/all.work(), 3)
	for _, ms := range append(slices.Clone(paces), math.Inf(1)) {
		of, away := ms/mean, latency
		if math.IsInf(ms, 1) {
			of, away = 1, 0
		}
		slow, err := all.worked(of, away)
		if err != nil {
			return err
		}
		fast, err := some.worked(of, away)
		if err != nil {
			return err
		}
		s.Faster = append(s.Faster, benchmark.Rounded(slow/fast, 3))
	}
	var largest [2]int64
	for i, j := range []*job{all, some} {
		for k, tasks := range j.plan.Orders() {
			st, err := j.stage(k, tasks)
			if err != nil {
				return err
			}
			largest[i] = max(largest[i], st.Bytes())
		}
	}
	s.Memory = benchmark.Rounded(float64(largest[1])/float64(largest[0]), 3)
	return nil
}

// operations are those of a forward or a backward.
func (j *job) operations(at order.Place) float64 {
	for _, p := range j.plan.Stages[at.Stage].Pieces {
		if p.Task == at.Task && (p.Phase == order.Forward || p.Phase == order.Backward) {
			return float64(p.Program.Flops())
		}
	}
	return 0
}

// work is the operations of all forwards and backwards of a step.
func (j *job) work() (all float64) {
	for s := range j.plan.Stages {
		for _, p := range j.plan.Stages[s].Pieces {
			all += j.operations(order.Place{Stage: s, Task: p.Task})
		}
	}
	return all
}

// worked is the exact length of a step whose tasks take times by their operations, over links with a latency.
func (j *job) worked(of, latency float64) (float64, error) {
	ends, err := j.plan.Timed(1, func(at order.Place) float64 { return of * j.operations(at) },
		func(_, _ order.Place) float64 { return latency })
	if err != nil {
		return 0, err
	}
	return slices.Max(ends), nil
}

// train trains both models in one program each, with one seed and the same tokens, and compares what they make of text
// that neither has read: with all layers.
func (s *Skip) train(ctx context.Context, z size, steps, threads int) error {
	var loss [2]float64
	unread := sentences(24000)[len(z.text):]
	for i, share := range []float64{0, z.skip} {
		z.steps, z.skip = steps, share
		j, err := newJob(z, s.Stages, threads)
		if err != nil {
			return err
		}
		r, err := j.task.Run(j.base, unit, nil, nil)
		if err != nil {
			return err
		}
		tensors := map[string]*tensor.Tensor{}
		for k, name := range train.StateNames(j.task.Step) {
			if n, ok := strings.CutPrefix(name, train.Param); ok {
				tensors[n] = r.End[k]
			}
		}
		m := pretrained.Mixture{{Prior: 1,
			Model: &pretrained.Model{Config: j.config, Tensors: tensors, Tokenizer: tokenizer.Bytes()}}}
		e, err := m.Evaluate(ctx, unread, 0, threads)
		if err != nil {
			return err
		}
		loss[i] = math.Log(e.Perplexity)
	}
	s.Steps, s.Loss = steps, benchmark.Rounded(loss[1], 4)
	s.Gap = benchmark.Rounded(loss[1]/loss[0]-1, 4)
	return nil
}
