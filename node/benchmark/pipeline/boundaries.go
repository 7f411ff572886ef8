package pipeline

import (
	"context"
	"errors"

	"github.com/starling-network/starling/compute/stages/boundary"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/benchmark/sentences"
)

// Boundary is a model whose stages exchange values by a scheme.
type Boundary struct {
	Scheme  string  `json:"scheme"`
	Forward float64 `json:"forward"` // bytes of a token over a boundary
	Back    float64 `json:"back"`
	Steps   int     `json:"steps"`
	Loss    float64 `json:"loss"` // mean of the last tenth of the steps, nats a token
	Gap     float64 `json:"gap"`  // by which it is above that of values sent as they are
	Differ  int     `json:"differ"`
	Excess  int64   `json:"excess"` // bytes of a step above those of the formula of the scheme
}

// schemes that are compared with values sent as they are.
var schemes = []struct {
	name string
	sent boundary.Scheme
}{{"float32", boundary.Scheme{}}, {"4 bits", boundary.Scheme{Bits: 4}},
	{"half of the columns", boundary.Scheme{Columns: 32}}, {"an eighth of the columns", boundary.Scheme{Columns: 8}}}

// boundaries trains one model by each scheme, in one program, and compares a few steps of it with those in four stages.
func boundaries(ctx context.Context, steps, threads int) (list []Boundary, err error) {
	z := size{family: "llama", layers: 4, width: 64, length: 32, sequences: 16, microbatch: 8,
		text: sentences.Ended(20000)}
	for _, s := range schemes {
		z.sent, z.steps = s.sent, min(steps, 2)
		c, err := compare(z, 4, threads)
		if err != nil {
			return nil, err
		}
		z.steps = steps
		j, err := newJob(z, 4, threads)
		if err != nil {
			return nil, err
		}
		r, err := j.task.Run(j.base, unit, nil, nil)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		b := Boundary{Scheme: s.name, Steps: steps, Differ: c.Differ, Excess: j.excess(z)}
		last := r.Losses[len(r.Losses)-max(1, steps/10):]
		for _, l := range last {
			b.Loss += float64(l) / float64(len(last))
		}
		forward, back := s.sent.Bytes(z.microbatch*z.length, z.width)
		b.Forward = float64(forward) / float64(z.microbatch*z.length)
		b.Back = float64(back) / float64(z.microbatch*z.length)
		list = append(list, b)
		b = list[len(list)-1]
		list[len(list)-1].Gap = benchmark.Rounded(b.Loss/list[0].Loss-1, 4)
		list[len(list)-1].Loss = benchmark.Rounded(b.Loss, 4)
	}
	return list, nil
}

// excess is the bytes that the stages of a job exchange in a step above those that the scheme says. Scalars, and the
// gradients of single biases, do not count.
func (j *job) excess(z size) (n int64) {
	for _, t := range j.plan.Transfers {
		if t.Shape.Rank() > 1 || t.Shape.DType != tensor.Float32 {
			n += int64(t.Shape.Bytes())
		}
	}
	forward, back := z.sent.Bytes(z.microbatch*z.length, z.width)
	return n - int64((forward+back)*j.plan.Micro*(len(j.plan.Stages)-1))
}
