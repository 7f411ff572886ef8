package sequence

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/attention"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/model/rotary"
)

// Ragged is sequences of different lengths that end together: those of shorter ones begin with padding. Some tokens of
// each, from a column on, follow those whose keys and values are remembered. No token sees padding.
type Ragged struct {
	padding *graph.Node // int32 [n]: tokens of padding
	first   int         // column of the first token
	length  int         // tokens of each sequence
	before  []*keyed    // of each layer, of the columns before first; nil: there are none
	layers  []*keyed    // of each layer, of all columns up to the last token, as they are made
	masks   map[int]*graph.Node
}

// keyed is keys and values of tokens: [n, columns, kvHeads, 1, headDim].
type keyed struct{ keys, values *graph.Node }

// NewRagged is sequences that begin in the first column.
func NewRagged(padding *graph.Node, length int) *Ragged {
	return &Ragged{padding: padding, length: length, masks: map[int]*graph.Node{}}
}

// Next is one more token of each sequence.
func (s *Ragged) Next() *Ragged {
	return &Ragged{padding: s.padding, first: s.first + s.length, length: 1, before: s.layers,
		masks: map[int]*graph.Node{}}
}

// Repeated has each sequence a number of times.
func (s *Ragged) Repeated(times int) *Ragged {
	r := *s
	r.padding, r.layers, r.masks = rollout.Repeat(s.padding, times), nil, map[int]*graph.Node{}
	for _, of := range s.layers {
		r.layers = append(r.layers, &keyed{rollout.Repeat(of.keys, times), rollout.Repeat(of.values, times)})
	}
	return &r
}

// Batch implements Attender.
func (s *Ragged) Batch() int { return dims(s.padding)[0] }

// positions are the places of the tokens in their sequences, those of padding 0: int32 [n, length].
func (s *Ragged) positions() *graph.Node {
	grid := shapes.Make(dtypes.Int32, s.Batch(), s.length)
	column := graph.AddScalar(graph.Iota(s.padding.Graph(), grid, 1), s.first)
	return graph.MaxScalar(graph.Sub(column, graph.ExpandAndBroadcast(s.padding, grid.Dimensions, []int{1})), 0)
}

// Places implements Sequence.
func (s *Ragged) Places(table *graph.Node) *graph.Node {
	return graph.Gather(table, graph.InsertAxes(s.positions(), -1))
}

// Rope implements Sequence.
func (s *Ragged) Rope(of rotary.Rotary) attention.Rope { return attention.NewRope(s.positions(), of) }

// Layer implements Sequence.
func (s *Ragged) Layer(i int) Attender { return raggedLayer{s, i} }

// mask is 0 where a token sees a column, and masked elsewhere: [n, 1, length, 1, columns].
func (s *Ragged) mask(window int) *graph.Node {
	if m, made := s.masks[window]; made {
		return m
	}
	g, columns := s.padding.Graph(), s.first+s.length
	grid := shapes.Make(dtypes.Int32, s.Batch(), s.length, columns)
	row, column := graph.AddScalar(graph.Iota(g, grid, 1), s.first), graph.Iota(g, grid, 2)
	sees := graph.LogicalAnd(graph.LessOrEqual(column, row),
		graph.GreaterOrEqual(column, graph.ExpandAndBroadcast(s.padding, grid.Dimensions, []int{1, 2})))
	if window > 0 {
		sees = graph.LogicalAnd(sees, graph.LessThan(row, graph.AddScalar(column, window)))
	}
	zero := graph.Zeros(g, shapes.Make(dtypes.Float32, grid.Dimensions...))
	m := graph.Where(sees, zero, graph.AddScalar(zero, attention.Masked))
	s.masks[window] = graph.Reshape(m, s.Batch(), 1, s.length, 1, columns)
	return s.masks[window]
}

// raggedLayer is the attention of one layer.
type raggedLayer struct {
	*Ragged
	i int
}

// Attend implements Attender.
func (l raggedLayer) Attend(q, k, v *graph.Node, look attention.View) *graph.Node {
	if l.before != nil {
		k = graph.Concatenate([]*graph.Node{l.before[l.i].keys, k}, 1)
		v = graph.Concatenate([]*graph.Node{l.before[l.i].values, v}, 1)
	}
	l.layers = append(l.layers, &keyed{k, v})
	return attention.Composed(q, k, v, look, func() *graph.Node { return l.mask(look.Window) })
}
