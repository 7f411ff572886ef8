// Package sequence is the tokens of a batch in graphs: where they stand in their sequences, and which of them a token
// sees. It knows no weights.
package sequence

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/attention"
	"github.com/starling-network/starling/compute/model/rotary"
)

// A Sequence says where the tokens of a batch stand and what they see.
type Sequence interface {
	// Places returns the rows of a table [positions, width] for the positions of the tokens: [batch, length, width].
	Places(table *graph.Node) *graph.Node
	// Rope returns the rotations of the positions of the tokens.
	Rope(of rotary.Rotary) attention.Rope
	// Layer returns the attention of a layer.
	Layer(i int) Attender
}

// An Attender lets every token see others of its sequence.
type Attender interface {
	Batch() int // sequences
	// Attend is attention with operands and result as those of attention.Causal.
	Attend(q, k, v *graph.Node, look attention.View) *graph.Node
}

// Whole is sequences that begin with the first of the tokens [batch, length]. A token sees those before it.
type Whole struct{ Tokens *graph.Node }

// Batch implements Attender.
func (s Whole) Batch() int { return dims(s.Tokens)[0] }

func (s Whole) length() int { return dims(s.Tokens)[1] }

// Layer implements Sequence.
func (s Whole) Layer(int) Attender { return s }

// Attend implements Attender.
func (s Whole) Attend(q, k, v *graph.Node, look attention.View) *graph.Node {
	return attention.Causal(q, k, v, look)
}

// Places implements Sequence.
func (s Whole) Places(table *graph.Node) *graph.Node {
	return graph.BroadcastPrefix(graph.Slice(table, graph.AxisRange(0, s.length())), s.Batch())
}

// Rope implements Sequence.
func (s Whole) Rope(of rotary.Rotary) attention.Rope {
	return attention.NewRope(graph.Iota(s.Tokens.Graph(), shapes.Make(dtypes.Int32, 1, s.length()), 1), of)
}

// Both is sequences as of Whole, of which every token sees those before it and those after it, up to the last that
// counts. The results for tokens after that one mean nothing.
type Both struct {
	Whole
	mask *graph.Node // float32 [batch, 1, 1, 1, length]: what is added to scores
}

// NewBoth is sequences of tokens [batch, length], of which the last that counts is in column last, int32 [batch].
func NewBoth(tokens, last *graph.Node) Both {
	s := Both{Whole: Whole{tokens}}
	grid := shapes.Make(dtypes.Int32, s.Batch(), s.length())
	column := graph.Iota(tokens.Graph(), grid, 1)
	counts := graph.LessOrEqual(column, graph.ExpandAndBroadcast(last, grid.Dimensions, []int{1}))
	zero := graph.Zeros(tokens.Graph(), shapes.Make(dtypes.Float32, grid.Dimensions...))
	mask := graph.Where(counts, zero, graph.AddScalar(zero, attention.Masked))
	s.mask = graph.Reshape(mask, s.Batch(), 1, 1, 1, s.length())
	return s
}

// Layer implements Sequence.
func (s Both) Layer(int) Attender { return s }

// Attend implements Attender. No window of look is shorter than the sequences.
func (s Both) Attend(q, k, v *graph.Node, look attention.View) *graph.Node {
	return attention.Composed(q, k, v, look, func() *graph.Node { return s.mask })
}

func dims(x *graph.Node) []int { return x.Shape().Dimensions }
