package record

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// Softplus is log(1+exp(x)), which is -log sigmoid(-x), in a form that overflows nowhere and whose gradient is the
// sigmoid at 0 too.
func Softplus(x *graph.Node) *graph.Node {
	top := graph.StopGradient(graph.Max(x, graph.ZerosLike(x)))
	return graph.Add(top, graph.Log(graph.Add(graph.Exp(graph.Neg(top)), graph.Exp(graph.Sub(x, top)))))
}

// Hits is 1 for rows of scores [n, classes] whose target [n] is the highest, else 0. It has no gradient.
func Hits(scores, targets *graph.Node) *graph.Node {
	scores = graph.StopGradient(scores)
	shape := scores.Shape().Dimensions
	ids := graph.Iota(scores.Graph(), shapes.Make(dtypes.Int32, shape...), 1)
	own := graph.Where(graph.Equal(ids, graph.ExpandAndBroadcast(targets, shape, []int{-1})), scores,
		graph.ZerosLike(scores))
	return graph.ConvertDType(graph.Equal(graph.ReduceSum(own, -1), graph.ReduceMax(scores, -1)), dtypes.Float32)
}
