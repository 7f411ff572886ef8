package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/record"
)

// crossEntropy is the mean over rows of -log softmax(logits)[target], in nats: logits [n, vocab], targets int32 [n].
func crossEntropy(logits, targets *graph.Node) *graph.Node {
	return graph.MulScalar(graph.ReduceAllSum(record.CrossEntropy(logits, targets)), 1/float64(dims(logits)[0]))
}

// at is x [n, m] where the column is the target of the row, and 0 elsewhere.
func at(x, targets *graph.Node) *graph.Node {
	g := x.Graph()
	ids := graph.Iota(g, shapes.Make(dtypes.Int32, dims(x)...), 1)
	return graph.Where(graph.Equal(ids, across(targets, x)), x, graph.ScalarZero(g, dtypes.Float32))
}

// mean is the mean of the elements of x with weight 1, 0 if there are none. Weights are 0 or 1.
func mean(x, weight *graph.Node) *graph.Node {
	one := graph.ScalarOne(x.Graph(), dtypes.Float32)
	return graph.Div(graph.ReduceAllSum(graph.Mul(x, weight)), graph.Max(graph.ReduceAllSum(weight), one))
}
