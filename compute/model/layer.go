package model

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/starling-network/starling/compute/model/architecture"
)

// A hidden state is [rows, width]: one row for each token of the batch, sequence after sequence.

func dims(x *graph.Node) []int { return x.Shape().Dimensions }

// across repeats x [..., n] along a new last axis to the shape of like [..., n, m].
func across(x, like *graph.Node) *graph.Node {
	return graph.ExpandAndBroadcast(x, dims(like), []int{-1})
}

// down repeats x [m] to the shape of like [n, m].
func down(x, like *graph.Node) *graph.Node { return graph.BroadcastPrefix(x, dims(like)[0]) }

// meanSquare returns the mean of the squares over the last axis: [n, m] -> [n].
func meanSquare(x *graph.Node) *graph.Node {
	return graph.MulScalar(graph.ReduceSum(graph.Mul(x, x), -1), 1/float64(dims(x)[1]))
}

// unit divides each row of x [n, m] by sqrt(meanSquare + eps).
func unit(x *graph.Node, eps float64) *graph.Node {
	scale := graph.Reciprocal(graph.Sqrt(graph.AddScalar(meanSquare(x), eps)))
	return graph.Mul(x, across(scale, x))
}

// rmsNorm is gain * x / rms(x) over rows of x [n, m] (Zhang and Sennrich 2019, equation 4).
func rmsNorm(x, gain *graph.Node, eps float64) *graph.Node {
	return graph.Mul(unit(x, eps), down(gain, x))
}

// layerNorm centres each row of x [n, m] and scales it to variance 1, then applies gain and bias [m] (Ba et al. 2016).
func layerNorm(x, gain, bias *graph.Node, eps float64) *graph.Node {
	minusMean := graph.MulScalar(graph.ReduceSum(x, -1), -1/float64(dims(x)[1]))
	centred := graph.Add(x, across(minusMean, x))
	return graph.Add(graph.Mul(unit(centred, eps), down(gain, x)), down(bias, x))
}

// linear is x [n, in] times the transpose of w [out, in].
func linear(x, w *graph.Node) *graph.Node {
	return graph.DotGeneral(x, []int{1}, nil, w, []int{1}, nil)
}

// lookup returns the rows of table [vocab, width] for tokens [batch, length]: [batch, length, width].
func lookup(table, tokens *graph.Node) *graph.Node {
	return graph.Gather(table, graph.InsertAxes(tokens, -1))
}

// normalised is the norm with the given name, with the suffixes .weight and .bias, of x [n, m].
func (w weights) normalised(c architecture.Config, name string, x *graph.Node) *graph.Node {
	gain := w.at(name + ".weight")
	switch c.Form.Norm {
	case architecture.LayerNorm:
		return layerNorm(x, gain, w.at(name+".bias"), c.NormEps)
	case architecture.RMSPlus1:
		return rmsNorm(x, graph.OnePlus(gain), c.NormEps)
	}
	return rmsNorm(x, gain, c.NormEps)
}
