package model

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/noising"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// A Denoiser estimates the noise in examples, which are rows of values from 0 to 255.
type Denoiser interface {
	// Tensors lists the tensors that are trained, in canonical order.
	Tensors() []architecture.Named
	// Example is the number of values of an example.
	Example() int
	// Schedule is that of the noise.
	Schedule() noising.Schedule
	// Noise maps noisy examples x [n, Example()] from about -1 to 1, at times [n] of whole numbers, both float32, to the
	// noise in them.
	Noise(p Parameters, x, times *graph.Node) *graph.Node
}

// Denoise is the task of estimating the noise in examples (Ho et al. 2020, algorithm 1 and equation 14). Batch:
// "tokens" int32 [b.Sequences, Example()+1], of which the last token of a row belongs to the next one. A step draws for
// each example a time and the noise by the key Dice. The loss is the mean square of the error of the estimate, over all
// values. b.Dropout is the share of the hidden values that is dropped.
//
// The loss of Eval is of noise that is the same for every checkpoint, at times that are spread evenly over all.
// Metric: "mse", the same number: of an estimate of 0 it is about 1.
func Denoise(n Denoiser, b Batch) (Task, error) {
	if b.Sequences < 1 || b.Sequences > 1<<16 || b.Silent != 0 || b.Half || b.Form != (exact.Form{}) {
		return Task{}, fmt.Errorf("%w: %d noisy examples, silent tokens, halves or integers", ErrStep, b.Sequences)
	}
	if err := b.check(); err != nil {
		return Task{}, err
	}
	values := func(rows *graph.Node) *graph.Node {
		return graph.Slice(rows, graph.AxisRange(), graph.AxisRange(0, n.Example()))
	}
	share := func(w weights, x, times, noise *graph.Node) *graph.Node { // of a part, in the mean over all examples
		apart := graph.Sub(n.Noise(Parameters{w}, x, times), noise)
		return graph.MulScalar(graph.ReduceAllSum(graph.Mul(apart, apart)), 1/float64(b.Sequences*n.Example()))
	}
	t := Task{Batch: []architecture.Named{tokenBatch(b.Sequences, n.Example()+1)}, Trained: n.Tensors(),
		Metrics: []string{"mse"}, micro: b.Micro, hidden: b.Dropout, draws: true}
	t.prepare = func(w weights, batch []*graph.Node) []*graph.Node {
		d := n.Schedule().Drawn(values(batch[0]), w.Dice.Key)
		return []*graph.Node{d.X, d.Times, d.Noise}
	}
	t.loss = func(w weights, part, _ []*graph.Node) []*graph.Node {
		return []*graph.Node{share(w, part[0], part[1], part[2])}
	}
	t.measure = func(w weights, batch []*graph.Node) []*graph.Node {
		d := n.Schedule().Even(values(batch[0]))
		loss := share(w, d.X, d.Times, d.Noise)
		return []*graph.Node{loss, loss}
	}
	return t, nil
}

// Noise returns the program of a denoiser. Inputs: "x" float32 [rows, Example()], "times" float32 [rows] and the
// tensors "p/<name>"; output: "noise" [rows, Example()].
func Noise(n Denoiser, rows int) (*program.Program, error) {
	t := Task{Batch: []architecture.Named{{Name: "x", Shape: tensor.Make(tensor.Float32, rows, n.Example())},
		{Name: "times", Shape: tensor.Make(tensor.Float32, rows)}}, Trained: n.Tensors()}
	return t.outputs([]string{"noise"}, func(w weights, in []*graph.Node) []*graph.Node {
		return []*graph.Node{n.Noise(Parameters{w}, in[0], in[1])}
	})
}
