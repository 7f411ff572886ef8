package check

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/attention"
	"github.com/starling-network/starling/compute/model/rotary"
	"github.com/starling-network/starling/compute/model/sequence"
)

const (
	piece = 64  // tokens of a prompt that compute/generate reads at once
	block = 512 // rows whose scores are computed together
)

// pieces is one sequence, which sees its past as compute/generate does: a token of a prompt the pieces before its own,
// and apart from them the tokens of its piece; a token of an answer all tokens before it, and apart from them itself.
// The sums over both parts are the same, to the bit, wherever the zeros of tokens that are not seen stand: a sum begins
// at a multiple of 16, and a product at one of 64.
type pieces struct {
	length  int
	context int
	row     *graph.Node // int32 [length]
	begin   *graph.Node // int32 [length]: tokens before the piece of each
	start   *graph.Node // int32 [length]: tokens in the past of each
}

var _ sequence.Sequence = pieces{}

// newPieces is a sequence of a number of tokens, of which the first element of place are a prompt.
func newPieces(place *graph.Node, length, context int) pieces {
	s := pieces{length: length, context: context}
	s.row = graph.Iota(place.Graph(), shapes.Make(dtypes.Int32, length), 0)
	each := scalarOf(s.row, piece)
	s.begin = graph.Mul(graph.Div(s.row, each), each)
	s.start = graph.Where(graph.LessThan(s.row, element(place, 0, length)), s.begin, s.row)
	return s
}

// positions are those of the tokens: int32 [1, length]. Those after the last one of the model have that.
func (s pieces) positions() *graph.Node {
	return graph.Reshape(graph.MinScalar(s.row, s.context-1), 1, s.length)
}

// Places implements sequence.Sequence.
func (s pieces) Places(table *graph.Node) *graph.Node { return lookup(table, s.positions()) }

// Rope implements sequence.Sequence.
func (s pieces) Rope(of rotary.Rotary) attention.Rope { return attention.NewRope(s.positions(), of) }

// Layer implements sequence.Sequence.
func (s pieces) Layer(int) sequence.Attender { return s }

// Batch implements sequence.Attender.
func (s pieces) Batch() int { return 1 }

// Attend implements sequence.Attender, some rows at a time: they see no columns after themselves.
func (s pieces) Attend(q, k, v *graph.Node, look attention.View) *graph.Node {
	kvHeads, group, headDim := dims(q)[2], dims(q)[3], dims(q)[4]
	q = look.Scaled(graph.Reshape(q, s.length, kvHeads, group, headDim))
	k, v = graph.Reshape(k, s.length, kvHeads, headDim), graph.Reshape(v, s.length, kvHeads, headDim)
	var mixed []*graph.Node
	for from := 0; from < s.length; from += block {
		to := min(from+block, s.length)
		mixed = append(mixed, s.attend(q, k, v, look, from, to))
	}
	if len(mixed) == 1 {
		return mixed[0]
	}
	return graph.Concatenate(mixed, 0)
}

// attend normalises once, over the scores of the past and of the tokens.
func (s pieces) attend(q, k, v *graph.Node, look attention.View, from, to int) *graph.Node {
	rows, kvHeads, group, headDim := to-from, dims(q)[1], dims(q)[2], dims(q)[3]
	n := rows / piece
	of := func(x *graph.Node, from, to int) *graph.Node { return graph.Slice(x, graph.AxisRange(from, to)) }
	q = of(q, from, to)
	own := func(x *graph.Node) *graph.Node { return graph.Reshape(of(x, from, to), n, piece, kvHeads, headDim) }
	masked := func(x *graph.Node, seen *graph.Node) *graph.Node {
		x = attention.Capped(x, look.Limit)
		zero := graph.ZerosLike(graph.ConvertDType(seen, dtypes.Float32))
		mask := graph.Where(seen, zero, graph.AddScalar(zero, attention.Masked))
		return graph.Add(x, graph.BroadcastToDims(graph.Reshape(mask, 1, rows, 1, dims(seen)[1]), dims(x)...))
	}
	before := graph.DotGeneral(q, []int{3}, []int{1}, of(k, 0, to), []int{2}, []int{1})
	before = masked(before, s.seen(look, from, to, true)) // [kvHeads, rows, group, columns]
	among := graph.DotGeneral(graph.Reshape(q, n, piece, kvHeads, group, headDim), []int{4}, []int{0, 2}, own(k), []int{3},
		[]int{0, 2}) // [n, kvHeads, piece, group, piece]
	among = graph.Reshape(graph.TransposeAllAxes(among, 1, 0, 2, 3, 4), kvHeads, rows, group, piece)
	among = masked(among, s.seen(look, from, to, false))

	most := graph.Max(graph.ReduceMax(before, -1), graph.ReduceMax(among, -1))
	before, among = graph.Exp(graph.Sub(before, across(most, before))), graph.Exp(graph.Sub(among, across(most, among)))
	sum := graph.Add(graph.ReduceSum(before, -1), graph.ReduceSum(among, -1))
	mixed := graph.DotGeneral(before, []int{3}, []int{0}, of(v, 0, to), []int{0}, []int{1})
	in := graph.DotGeneral(graph.Reshape(among, kvHeads, n, piece, group, piece), []int{4}, []int{0, 1}, own(v), []int{1},
		[]int{2, 0})
	mixed = graph.Add(mixed, graph.Reshape(in, kvHeads, rows, group, headDim))
	mixed = graph.Mul(mixed, across(graph.Reciprocal(sum), mixed))
	return graph.Reshape(graph.TransposeAllAxes(mixed, 1, 0, 2, 3), rows, -1)
}

// seen is whether each row sees a column: of the past, [rows, to], or else of its piece, [rows, piece].
func (s pieces) seen(look attention.View, from, to int, past bool) *graph.Node {
	grid := shapes.Make(dtypes.Int32, to-from, piece)
	if past {
		grid.Dimensions[1] = to
	}
	across := func(x *graph.Node) *graph.Node {
		return graph.ExpandAndBroadcast(graph.Slice(x, graph.AxisRange(from, to)), grid.Dimensions, []int{1})
	}
	column, row, start := graph.Iota(s.row.Graph(), grid, 1), across(s.row), across(s.start)
	sees := graph.LessThan(column, start)
	if !past {
		column = graph.Add(column, across(s.begin))
		sees = graph.LogicalAnd(graph.GreaterOrEqual(column, start), graph.LessOrEqual(column, row))
	}
	if look.Window > 0 {
		sees = graph.LogicalAnd(sees, graph.LessThan(row, graph.AddScalar(column, look.Window)))
	}
	return sees
}

// across repeats x [..., n] along a new last axis to the shape of like [..., n, m].
func across(x, like *graph.Node) *graph.Node {
	return graph.ExpandAndBroadcast(x, dims(like), []int{-1})
}
