package model

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/record"
)

// A hidden state is [rows, width]: one row for each token of the batch, sequence after sequence.

// masked is added to the scores of positions that may not be attended to: exp of anything near it is 0.
const masked = -1e9

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

// conv1D is x [n, in] times w [in, out] plus b [out], as Hugging Face calls the dense layer of GPT-2.
func conv1D(x, w, b *graph.Node) *graph.Node {
	y := graph.DotGeneral(x, []int{1}, nil, w, []int{0}, nil)
	return graph.Add(y, down(b, y))
}

// linear is x [n, in] times the transpose of w [out, in].
func linear(x, w *graph.Node) *graph.Node {
	return graph.DotGeneral(x, []int{1}, nil, w, []int{1}, nil)
}

// lookup returns the rows of table [vocab, width] for tokens [batch, length]: [batch, length, width].
func lookup(table, tokens *graph.Node) *graph.Node {
	return graph.Gather(table, graph.InsertAxes(tokens, -1))
}

// attend is causal attention scaled by 1/sqrt(headDim) (Vaswani et al. 2017, section 3.2), in which a group of query
// heads shares one head of keys and values (Ainslie et al. 2023): q [batch, length, kvHeads, group, headDim], k and v
// [batch, length, kvHeads, 1, headDim]. The result has the query heads side by side: [batch*length, heads*headDim].
func attend(q, k, v *graph.Node) *graph.Node {
	batch, length, headDim := dims(q)[0], dims(q)[1], dims(q)[4]
	headed := func(x *graph.Node) *graph.Node { // [batch, heads, length, headDim]
		return graph.TransposeAllAxes(graph.Reshape(x, batch, length, -1, headDim), 0, 2, 1, 3)
	}
	mixed := record.Attention(headed(scaled(q, headDim)), headed(k), headed(v))
	return graph.Reshape(graph.TransposeAllAxes(mixed, 0, 2, 1, 3), batch*length, -1)
}

// scaled is queries divided by sqrt(headDim).
func scaled(q *graph.Node, headDim int) *graph.Node {
	return graph.MulScalar(q, 1/math.Sqrt(float64(headDim)))
}

// causalMask is 0 where the row may attend to the column, and masked elsewhere: [length, length].
func causalMask(g *graph.Graph, length int) *graph.Node {
	square := shapes.Make(dtypes.Int32, length, length)
	past := graph.LessOrEqual(graph.Iota(g, square, 1), graph.Iota(g, square, 0))
	zero := graph.Zeros(g, shapes.Make(dtypes.Float32, length, length))
	return graph.Where(past, zero, graph.AddScalar(zero, masked))
}

// rope turns pairs of elements of a head by an angle that grows with the position (Su et al. 2021, section 3.2.2), with
// element i paired with i+headDim/2 as Hugging Face does.
type rope struct{ cos, sin, minusSin *graph.Node } // [1, length, 1, 1, headDim/2]

// newRope makes the tables of the first length positions as constants. Angles are products of float32 numbers, as in
// Hugging Face, so that weights mean the same in both at any position.
func newRope(g *graph.Graph, theta float64, length, headDim int) rope {
	half := headDim / 2
	cos, sin := make([]float32, length*half), make([]float32, length*half)
	for i, frequency := range ropeFrequencies(theta, headDim) {
		for t := range length {
			angle := float32(float32(t) * frequency)
			cos[t*half+i], sin[t*half+i] = kernel.Cos(angle), kernel.Sin(angle)
		}
	}
	table := func(data []float32) *graph.Node {
		return graph.ConstTensor(g, tensors.FromFlatDataAndDimensions(data, 1, length, 1, 1, half))
	}
	r := rope{cos: table(cos), sin: table(sin)}
	r.minusSin = graph.Neg(r.sin)
	return r
}

// ropeFrequencies returns the angle by which each pair of a head turns from one position to the next.
func ropeFrequencies(theta float64, headDim int) []float32 {
	frequencies := make([]float32, headDim/2)
	for i := range frequencies {
		exponent := float64(-2*i) / float64(headDim)
		frequencies[i] = float32(kernel.Exp64(float64(exponent * kernel.Log64(theta))))
	}
	return frequencies
}

// turn applies the rotation to the heads x [batch, length, kvHeads, group, headDim].
func (r rope) turn(x *graph.Node) *graph.Node {
	half := dims(r.cos)[4]
	a := graph.Slice(x, graph.AxisRange().Spacer(), graph.AxisRange(0, half))
	b := graph.Slice(x, graph.AxisRange().Spacer(), graph.AxisRange(half))
	return graph.Concatenate([]*graph.Node{
		graph.Add(graph.Mul(a, r.cos), graph.Mul(b, r.minusSin)),
		graph.Add(graph.Mul(b, r.cos), graph.Mul(a, r.sin)),
	}, -1)
}
