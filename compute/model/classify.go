package model

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/tensor"
)

// A Network maps inputs to the scores of classes. There are MLP and CNN, which classify the rows of a batch on their own.
type Network interface {
	// Tensors lists the tensors in canonical order, with the names and layouts of PyTorch.
	Tensors() []Named
	check() error
	// features are the dimensions of one example.
	features() []int
	// dropouts lists the masks that a batch needs.
	dropouts(batch int) []dropout
	// scores maps x [batch, features...] to [batch, classes]. Masks are those of dropouts, none outside of training.
	scores(w weights, x *graph.Node, masks []*graph.Node) *graph.Node
}

// Classify is the task of naming the class of each example. Batch: "x" float32 [batch, features...], "y" int32 [batch],
// each in 0..classes-1. The loss is the mean cross-entropy in nats; the metric "accuracy" is the share of examples whose
// class has the highest score.
func Classify(n Network, batch int) (Task, error) {
	if batch < 1 || batch > 1<<16 {
		return Task{}, fmt.Errorf("%w: batch %d must be in 1..65536", ErrStep, batch)
	}
	if err := n.check(); err != nil {
		return Task{}, err
	}
	t := Task{
		Batch: []Named{{Name: "x", Shape: tensor.Make(tensor.Float32, append([]int{batch}, n.features()...)...)},
			{Name: "y", Shape: tensor.Make(tensor.Int32, batch)}},
		Trained: n.Tensors(), Metrics: []string{"accuracy"}, dropout: n.dropouts(batch),
	}
	t.loss = func(w weights, in, masks []*graph.Node) []*graph.Node {
		scores := n.scores(w, in[0], masks)
		all := graph.OnesLike(graph.ReduceSum(scores, -1))
		return []*graph.Node{crossEntropy(scores, in[1]), mean(hits(scores, in[1]), all)}
	}
	return t, nil
}

// hits is 1 for rows of scores [n, classes] whose target is the highest, else 0.
func hits(scores, targets *graph.Node) *graph.Node {
	scores = graph.StopGradient(scores)
	reached := graph.Equal(graph.ReduceSum(at(scores, targets), -1), graph.ReduceMax(scores, -1))
	return graph.ConvertDType(reached, dtypes.Float32)
}

// sizes checks the sizes of a network.
func sizes(network string, list ...int) error {
	for _, n := range list {
		if n < 1 || n > maxWidth {
			return fmt.Errorf("%w: %s with a size of %d; sizes must be in 1..%d", ErrStep, network, n, maxWidth)
		}
	}
	return nil
}

func rate(network string, p float64) error {
	if !(p >= 0 && p < 1) {
		return fmt.Errorf("%w: %s with dropout %g; it must be at least 0 and below 1", ErrStep, network, p)
	}
	return nil
}

func relu(x *graph.Node) *graph.Node {
	return graph.Max(x, graph.ScalarZero(x.Graph(), dtypes.Float32))
}

// dense is a layer [out, in] with bias, as PyTorch's Linear. Its weights start so that relu keeps the variance
// (He et al. 2015, equation 10).
func dense(name string, in, out int) []Named {
	return []Named{normal(math.Sqrt(2/float64(in)), name+".weight", out, in), zeros(name+".bias", out)}
}

// affine applies the layer dense to x [n, in].
func affine(w weights, name string, x *graph.Node) *graph.Node {
	y := linear(x, w.at(name+".weight"))
	return graph.Add(y, down(w.at(name+".bias"), y))
}

// MLP is a chain of dense layers with relu, and dropout after each hidden layer.
type MLP struct {
	Inputs, Classes int
	Hidden          []int   // widths
	Dropout         float64 // share of the hidden units that a training step zeroes
}

func (m MLP) check() error {
	if err := sizes("MLP", append([]int{m.Inputs, m.Classes}, m.Hidden...)...); err != nil {
		return err
	}
	return rate("MLP", m.Dropout)
}

func (m MLP) features() []int { return []int{m.Inputs} }

// Tensors are "fc<i>.weight" [out, in] and "fc<i>.bias" [out], i from 1.
func (m MLP) Tensors() (list []Named) {
	in := m.Inputs
	for i, out := range append(append([]int{}, m.Hidden...), m.Classes) {
		list = append(list, dense(fmt.Sprintf("fc%d", i+1), in, out)...)
		in = out
	}
	return list
}

func (m MLP) dropouts(batch int) (list []dropout) {
	if m.Dropout == 0 {
		return nil
	}
	for _, width := range m.Hidden {
		list = append(list, dropout{m.Dropout, []int{batch, width}})
	}
	return list
}

func (m MLP) scores(w weights, x *graph.Node, masks []*graph.Node) *graph.Node {
	for i := range m.Hidden {
		x = drop(relu(affine(w, fmt.Sprintf("fc%d", i+1), x)), masks, i, m.Dropout)
	}
	return affine(w, fmt.Sprintf("fc%d", len(m.Hidden)+1), x)
}
