// Package norm has the norms of hidden states in graphs: those of layers, and of the root of the mean square. It knows
// no weights.
package norm

import "github.com/gomlx/gomlx/core/graph"

// meanSquare returns the mean of the squares over the last axis: [n, m] -> [n].
func meanSquare(x *graph.Node) *graph.Node {
	return graph.MulScalar(graph.ReduceSum(graph.Mul(x, x), -1), 1/float64(dims(x)[1]))
}

// unit divides each row of x [n, m] by sqrt(meanSquare + eps).
func unit(x *graph.Node, eps float64) *graph.Node {
	scale := graph.Reciprocal(graph.Sqrt(graph.AddScalar(meanSquare(x), eps)))
	return graph.Mul(x, across(scale, x))
}

// RMS is gain * x / rms(x) over rows of x [n, m] (Zhang and Sennrich 2019, equation 4).
func RMS(x, gain *graph.Node, eps float64) *graph.Node {
	return graph.Mul(unit(x, eps), down(gain, x))
}

// Layer centres each row of x [n, m] and scales it to variance 1, then applies gain and bias [m] (Ba et al. 2016).
func Layer(x, gain, bias *graph.Node, eps float64) *graph.Node {
	minusMean := graph.MulScalar(graph.ReduceSum(x, -1), -1/float64(dims(x)[1]))
	centred := graph.Add(x, across(minusMean, x))
	return graph.Add(graph.Mul(unit(centred, eps), down(gain, x)), down(bias, x))
}

// across repeats x [n] along a new last axis to the shape of like [n, m].
func across(x, like *graph.Node) *graph.Node {
	return graph.ExpandAndBroadcast(x, dims(like), []int{-1})
}

// down repeats x [m] to the shape of like [n, m].
func down(x, like *graph.Node) *graph.Node { return graph.BroadcastPrefix(x, dims(like)[0]) }

func dims(x *graph.Node) []int { return x.Shape().Dimensions }
