package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/starling-network/starling/compute/model/rotary"
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

// linear is x [n, in] times the transpose of w [out, in].
func linear(x, w *graph.Node) *graph.Node {
	return graph.DotGeneral(x, []int{1}, nil, w, []int{1}, nil)
}

// lookup returns the rows of table [vocab, width] for tokens [batch, length]: [batch, length, width].
func lookup(table, tokens *graph.Node) *graph.Node {
	return graph.Gather(table, graph.InsertAxes(tokens, -1))
}

// attend is causal attention (Vaswani et al. 2017, section 3.2), in which a group of query heads shares one head of
// keys and values (Ainslie et al. 2023): q [batch, length, kvHeads, group, headDim], k and v [batch, length, kvHeads,
// 1, headDim]. The result has the query heads side by side: [batch*length, heads*headDim].
func attend(q, k, v *graph.Node, look view) *graph.Node {
	batch, length, headDim := dims(q)[0], dims(q)[1], dims(q)[4]
	if look.limit > 0 || look.window > 0 && look.window < length {
		return composed(q, k, v, look)
	}
	headed := func(x *graph.Node) *graph.Node { // [batch, heads, length, headDim]
		return graph.TransposeAllAxes(graph.Reshape(x, batch, length, -1, headDim), 0, 2, 1, 3)
	}
	mixed := record.Attention(headed(look.scaled(q)), headed(k), headed(v))
	return graph.Reshape(graph.TransposeAllAxes(mixed, 0, 2, 1, 3), batch*length, -1)
}

// composed is attend of plain operators, for scores that are capped or seen through a window. It holds all of them.
func composed(q, k, v *graph.Node, look view) *graph.Node {
	shape := dims(q)
	batch, length, kvHeads, group, headDim := shape[0], shape[1], shape[2], shape[3], shape[4]
	headed := func(x *graph.Node, group int) *graph.Node { // [batch, kvHeads, length*group, headDim]
		x = graph.TransposeAllAxes(x, 0, 2, 1, 3, 4)
		return graph.Reshape(x, batch, kvHeads, length*group, headDim)
	}
	scores := graph.DotGeneral(headed(look.scaled(q), group), []int{3}, []int{0, 1}, headed(k, 1), []int{3}, []int{0, 1})
	scores = capped(graph.Reshape(scores, batch, kvHeads, length, group, length), look.limit)
	mask := graph.Reshape(causalMask(q.Graph(), length, look.window), 1, 1, length, 1, length)
	scores = graph.Add(scores, graph.BroadcastToDims(mask, dims(scores)...))
	most := graph.StopGradient(graph.ReduceMax(scores, -1))
	shares := graph.Exp(graph.Sub(scores, across(most, scores)))
	rest := graph.Reciprocal(graph.ReduceSum(shares, -1)) // [batch, kvHeads, length, group]
	shares = graph.Reshape(shares, batch, kvHeads, length*group, length)
	mixed := graph.DotGeneral(shares, []int{3}, []int{0, 1}, headed(v, 1), []int{2}, []int{0, 1})
	mixed = graph.Reshape(mixed, batch, kvHeads, length, group, headDim)
	mixed = graph.Mul(mixed, across(rest, mixed))
	return graph.Reshape(graph.TransposeAllAxes(mixed, 0, 2, 1, 3, 4), batch*length, -1)
}

// scaled is queries times the factor of their scores.
func (v view) scaled(q *graph.Node) *graph.Node { return graph.MulScalar(q, v.scale) }

// causalMask is 0 where the row may attend to the column, and masked elsewhere: [length, length]. A window that is not
// 0 is how many columns a row may attend to, its own included.
func causalMask(g *graph.Graph, length, window int) *graph.Node {
	square := shapes.Make(dtypes.Int32, length, length)
	column, row := graph.Iota(g, square, 1), graph.Iota(g, square, 0)
	zero := graph.Zeros(g, shapes.Make(dtypes.Float32, length, length))
	mask := graph.Where(graph.LessOrEqual(column, row), zero, graph.AddScalar(zero, masked))
	if window > 0 && window < length {
		near := graph.LessThan(row, graph.AddScalar(column, window))
		mask = graph.Where(near, mask, graph.AddScalar(zero, masked))
	}
	return mask
}

// rope turns pairs of elements of a head by an angle that grows with the position (Su et al. 2021, section 3.2.2), with
// element i paired with i+pairs as Hugging Face does.
type rope struct{ cos, sin, minusSin *graph.Node } // [n, length, 1, 1, pairs]

// newRope computes the tables of the positions [n, length]. Angles are products of float32 numbers, as in Hugging Face,
// so that weights mean the same in both at any position.
func newRope(positions *graph.Node, of rotary.Rotary) rope {
	n, length, half := dims(positions)[0], dims(positions)[1], of.Dim/2
	grid := func(x *graph.Node, axes ...int) *graph.Node {
		return graph.ExpandAndBroadcast(x, []int{n, length, half}, axes)
	}
	frequencies := graph.Const(positions.Graph(), of.Frequencies())
	angles := graph.Mul(grid(graph.ConvertDType(positions, dtypes.Float32), 2), grid(frequencies, 0, 1))
	table := func(x *graph.Node) *graph.Node {
		if size := of.Magnitude(); size != 1 {
			x = graph.MulScalar(x, float64(size))
		}
		return graph.Reshape(x, n, length, 1, 1, half)
	}
	r := rope{cos: table(graph.Cos(angles)), sin: table(graph.Sin(angles))}
	r.minusSin = graph.Neg(r.sin)
	return r
}

// turn applies the rotation to the heads x [batch, length, kvHeads, group, headDim], whose elements after those that
// are turned stay.
func (r rope) turn(x *graph.Node) *graph.Node {
	half := dims(r.cos)[4]
	a := graph.Slice(x, graph.AxisRange().Spacer(), graph.AxisRange(0, half))
	b := graph.Slice(x, graph.AxisRange().Spacer(), graph.AxisRange(half, 2*half))
	turned := []*graph.Node{
		graph.Add(graph.Mul(a, r.cos), graph.Mul(b, r.minusSin)),
		graph.Add(graph.Mul(b, r.cos), graph.Mul(a, r.sin)),
	}
	if 2*half < dims(x)[4] {
		turned = append(turned, graph.Slice(x, graph.AxisRange().Spacer(), graph.AxisRange(2*half)))
	}
	return graph.Concatenate(turned, -1)
}
