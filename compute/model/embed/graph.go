package embed

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/padding"
)

// leastSquare is added to the square of a length, so that a vector of zeros has a gradient.
const leastSquare = 1e-12

// Vectors implements model.Embedder: the mean of the hidden states of the tokens up to the last one that is no padding,
// which all see each other, divided by its length.
func (n Network) Vectors(p model.Parameters, texts *graph.Node) *graph.Node {
	rows := texts.Shape().Dimensions[0]
	read, last := padding.Last(texts, n.pad, n.config.VocabSize())
	states := graph.Reshape(p.HiddenOfBoth(n.config, read, last), rows, n.length, n.config.Width)

	grid := shapes.Make(dtypes.Int32, rows, n.length)
	counts := graph.LessOrEqual(graph.Iota(texts.Graph(), grid, 1),
		graph.ExpandAndBroadcast(last, grid.Dimensions, []int{1}))
	share := graph.ConvertDType(counts, dtypes.Float32)
	share = graph.Div(share, graph.ExpandAndBroadcast(graph.ReduceSum(share, -1), grid.Dimensions, []int{1}))
	mean := graph.DotGeneral(share, []int{1}, []int{0}, states, []int{1}, []int{0})

	square := graph.AddScalar(graph.ReduceSum(graph.Mul(mean, mean), -1), leastSquare)
	scale := graph.Reciprocal(graph.Sqrt(square))
	return graph.Mul(mean, graph.ExpandAndBroadcast(scale, mean.Shape().Dimensions, []int{1}))
}
