package check

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/check/given"
	"github.com/starling-network/starling/compute/model/decoder"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/record"
)

// decided is the tokens of an answer, decided again.
type decided struct {
	c     architecture.Config
	vocab int
	ends  []int32
}

// rows are the tokens that are decided: the place of the one before each, int32 [rows], and the logits [rows, vocab]
// after it.
func (d decided) rows(w decoder.Weights, text, place *graph.Node) (before, logits *graph.Node) {
	length := dims(text)[0]
	rows := given.Rows(length)
	before = graph.Add(element(place, 0, rows), element(place, 1, rows))
	before = graph.AddScalar(graph.Add(graph.Iota(text.Graph(), before.Shape(), 0), before), -1)
	before = graph.MinScalar(before, length-1)
	known := graph.MaxScalar(graph.MinScalar(text, d.c.VocabSize()-1), 0)
	x := decoder.Hidden(d.c, w, graph.Reshape(known, 1, length), newPieces(place, length, d.c.Context()))
	logits = decoder.Output(d.c, w, lookup(x, before))
	return before, graph.Slice(logits, graph.AxisRange(), graph.AxisRange(0, d.vocab))
}

// wrong is the number of the first token that is another than was given.
func (d decided) wrong(w decoder.Weights, text, place, draw, key *graph.Node) *graph.Node {
	length := dims(text)[0]
	rows := given.Rows(length)
	at := func(i int) *graph.Node { return element(place, i, rows) }
	row := graph.Iota(text.Graph(), shapes.Make(dtypes.Int32, rows), 0)
	before, logits := d.rows(w, text, place)
	told := lookup(graph.Reshape(text, length, 1), graph.MinScalar(graph.AddScalar(before, 1), length-1))
	told = graph.Reshape(told, rows)

	other := graph.NotEqual(rollout.Likeliest(d.scores(logits, draw, key)), told)
	if len(d.ends) > 0 {
		end := graph.Equal(told, scalarOf(told, int(d.ends[0])))
		for _, e := range d.ends[1:] {
			end = graph.LogicalOr(end, graph.Equal(told, scalarOf(told, int(e))))
		}
		other = graph.LogicalOr(other, graph.LogicalAnd(end, graph.NotEqual(row, at(3))))
		other = graph.LogicalOr(other, graph.LogicalAnd(graph.LogicalNot(end), graph.Equal(row, at(3))))
	} else {
		other = graph.LogicalOr(other, graph.Equal(row, at(3)))
	}
	other = graph.LogicalAnd(other, graph.LessThan(row, at(2)))
	return graph.ReduceMin(graph.Where(other, row, scalarOf(row, rows)), 0)
}

// scores are those of which a token with the highest is taken: [rows, vocab].
func (d decided) scores(logits, draw, key *graph.Node) *graph.Node {
	g, rows := logits.Graph(), dims(logits)[0]
	across := func(i int) *graph.Node {
		return graph.ExpandAndBroadcast(element(draw, i, rows), []int{rows, d.vocab}, []int{1})
	}
	words := given.Words(d.vocab)
	key = graph.Mul(key, graph.Const(g, []int64{1, 1, int64(words / 4)}))
	noise := record.Gumbel(graph.Zeros(g, shapes.Make(dtypes.Float32, rows, words)), key, 0)
	noise = graph.Slice(noise, graph.AxisRange(), graph.AxisRange(0, d.vocab))
	scaled := graph.Mul(logits, across(0))
	outside := rollout.Outside(scaled, func(sum *graph.Node) *graph.Node {
		return graph.Mul(sum, element(draw, 1, rows))
	})
	noisy := graph.Add(scaled, graph.Mul(noise, across(2)))
	return graph.Where(outside, graph.AddScalar(graph.ZerosLike(noisy), given.Lowest), noisy)
}

// element is element i of a list, repeated.
func element(list *graph.Node, i, times int) *graph.Node {
	return graph.BroadcastToDims(graph.Reshape(graph.Slice(list, graph.AxisRange(i, i+1))), times)
}

// scalarOf is a number in the shape of x.
func scalarOf(x *graph.Node, n int) *graph.Node { return graph.AddScalar(graph.ZerosLike(x), n) }

func dims(x *graph.Node) []int { return x.Shape().Dimensions }

// lookup returns the rows of a table [rows, width] for indices of any shape.
func lookup(table, indices *graph.Node) *graph.Node {
	return graph.Gather(table, graph.InsertAxes(indices, -1))
}
