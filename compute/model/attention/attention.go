// Package attention is the attention of decoders as graphs: which tokens see which, how scores are scaled and capped,
// and rotary positions. It knows no weights.
package attention

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/record"
)

// Masked is added to the scores of tokens that are not seen: exp of anything near it is 0.
const Masked = -1e9

// View is how a layer looks at the past.
type View struct {
	Scale  float64 // factor of scores
	Limit  float64 // soft cap of scores, 0 if there is none
	Window int     // tokens that a token sees, itself included; 0 is all
}

// ViewOf is the view of a layer.
func ViewOf(c architecture.Config, layer int) View {
	v := View{Scale: 1 / math.Sqrt(float64(c.HeadDim)), Limit: c.Form.ScoreCap}
	if c.Form.Scale > 0 {
		v.Scale = 1 / math.Sqrt(c.Form.Scale)
	}
	if c.Form.Unscaled {
		v.Scale = 1
	}
	if c.Form.ByLayer {
		v.Scale /= float64(layer + 1)
	}
	if c.Form.Sliding(layer) {
		v.Window = c.Form.Window
	}
	return v
}

// Causal is causal attention (Vaswani et al. 2017, section 3.2), in which a group of query heads shares one head of
// keys and values (Ainslie et al. 2023): q [batch, length, kvHeads, group, headDim], k and v [batch, length, kvHeads,
// 1, headDim]. The result has the query heads side by side: [batch*length, heads*headDim].
func Causal(q, k, v *graph.Node, look View) *graph.Node {
	batch, length, headDim := dims(q)[0], dims(q)[1], dims(q)[4]
	if look.Limit > 0 || look.Window > 0 && look.Window < length {
		return Composed(q, k, v, look, func() *graph.Node {
			return graph.Reshape(CausalMask(q.Graph(), length, look.Window), 1, 1, length, 1, length)
		})
	}
	headed := func(x *graph.Node) *graph.Node { // [batch, heads, length, headDim]
		return graph.TransposeAllAxes(graph.Reshape(x, batch, length, -1, headDim), 0, 2, 1, 3)
	}
	mixed := record.Attention(headed(look.Scaled(q)), headed(k), headed(v))
	return graph.Reshape(graph.TransposeAllAxes(mixed, 0, 2, 1, 3), batch*length, -1)
}

// Composed is attention of plain operators, for scores that are capped or seen through a mask. It holds all of them.
// The keys and values may be of another number of columns than the queries are. mask is called for what is added to
// the scores: [1 or batch, 1, length, 1, columns].
func Composed(q, k, v *graph.Node, look View, mask func() *graph.Node) *graph.Node {
	shape, columns := dims(q), dims(k)[1]
	batch, length, kvHeads, group, headDim := shape[0], shape[1], shape[2], shape[3], shape[4]
	headed := func(x *graph.Node) *graph.Node { // [batch, kvHeads, columns*group, headDim]
		x = graph.TransposeAllAxes(x, 0, 2, 1, 3, 4)
		return graph.Reshape(x, batch, kvHeads, -1, headDim)
	}
	scores := graph.DotGeneral(headed(look.Scaled(q)), []int{3}, []int{0, 1}, headed(k), []int{3}, []int{0, 1})
	scores = Capped(graph.Reshape(scores, batch, kvHeads, length, group, columns), look.Limit)
	scores = graph.Add(scores, graph.BroadcastToDims(mask(), dims(scores)...))
	most := graph.StopGradient(graph.ReduceMax(scores, -1))
	shares := graph.Exp(graph.Sub(scores, across(most, scores)))
	rest := graph.Reciprocal(graph.ReduceSum(shares, -1)) // [batch, kvHeads, length, group]
	shares = graph.Reshape(shares, batch, kvHeads, length*group, columns)
	mixed := graph.DotGeneral(shares, []int{3}, []int{0, 1}, headed(v), []int{2}, []int{0, 1})
	mixed = graph.Reshape(mixed, batch, kvHeads, length, group, headDim)
	mixed = graph.Mul(mixed, across(rest, mixed))
	return graph.Reshape(graph.TransposeAllAxes(mixed, 0, 2, 1, 3, 4), batch*length, -1)
}

// Scaled is queries times the factor of their scores.
func (v View) Scaled(q *graph.Node) *graph.Node { return graph.MulScalar(q, v.Scale) }

// CausalMask is 0 where the row may attend to the column, and Masked elsewhere: [length, length]. A window that is not
// 0 is how many columns a row may attend to, its own included.
func CausalMask(g *graph.Graph, length, window int) *graph.Node {
	square := shapes.Make(dtypes.Int32, length, length)
	column, row := graph.Iota(g, square, 1), graph.Iota(g, square, 0)
	zero := graph.Zeros(g, shapes.Make(dtypes.Float32, length, length))
	mask := graph.Where(graph.LessOrEqual(column, row), zero, graph.AddScalar(zero, Masked))
	if window > 0 && window < length {
		near := graph.LessThan(row, graph.AddScalar(column, window))
		mask = graph.Where(near, mask, graph.AddScalar(zero, Masked))
	}
	return mask
}

// PastMask is 0 for the tokens of the past of a sequence that count, of which there are start, an int32 scalar, and
// Masked for the others: [1, 1, 1, past], or [1, length, 1, past] where a window that is not 0 lets each of the length
// tokens after them see other ones.
func PastMask(start *graph.Node, length, past, window int) *graph.Node {
	g := start.Graph()
	counts := graph.LessThan(graph.Iota(g, shapes.Make(dtypes.Int32, past), 0), graph.BroadcastToDims(start, past))
	zero := graph.Zeros(g, shapes.Make(dtypes.Float32, past))
	mask := graph.Reshape(graph.Where(counts, zero, graph.AddScalar(zero, Masked)), 1, 1, 1, past)
	if window == 0 || window >= past+length {
		return mask
	}
	grid := shapes.Make(dtypes.Int32, length, past)
	place := graph.Add(graph.Iota(g, grid, 0), graph.BroadcastToDims(start, length, past))
	near := graph.LessThan(place, graph.AddScalar(graph.Iota(g, grid, 1), window))
	each := graph.BroadcastToDims(graph.Reshape(mask, 1, past), length, past)
	hidden := graph.AddScalar(graph.ZerosLike(each), Masked)
	return graph.Reshape(graph.Where(near, each, hidden), 1, length, 1, past)
}

// Capped is limit*tanh(x/limit), x itself for a limit of 0.
func Capped(x *graph.Node, limit float64) *graph.Node {
	if limit == 0 {
		return x
	}
	return graph.MulScalar(graph.Tanh(graph.MulScalar(x, 1/limit)), limit)
}

func dims(x *graph.Node) []int { return x.Shape().Dimensions }

// across repeats x [..., n] along a new last axis to the shape of like [..., n, m].
func across(x, like *graph.Node) *graph.Node {
	return graph.ExpandAndBroadcast(x, dims(like), []int{-1})
}
