package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/starling-network/starling/compute/model/attention"
	"github.com/starling-network/starling/compute/model/rotary"
)

// A sequence says where the tokens of a batch stand and what they see.
type sequence interface {
	// places returns the rows of a table [positions, width] for the positions of the tokens: [batch, length, width].
	places(table *graph.Node) *graph.Node
	// rope returns the rotations of the positions of the tokens.
	rope(of rotary.Rotary) attention.Rope
	// layer returns the attention of a layer.
	layer(i int) attender
}

// An attender lets every token see those before it in its sequence.
type attender interface {
	batch() int // sequences
	// attend is causal attention, with operands and result as those of attention.Causal.
	attend(q, k, v *graph.Node, look attention.View) *graph.Node
}

// whole is sequences that begin with the first of the tokens [batch, length].
type whole struct{ tokens *graph.Node }

func (s whole) batch() int         { return dims(s.tokens)[0] }
func (s whole) length() int        { return dims(s.tokens)[1] }
func (s whole) layer(int) attender { return s }

func (s whole) attend(q, k, v *graph.Node, look attention.View) *graph.Node {
	return attention.Causal(q, k, v, look)
}

func (s whole) places(table *graph.Node) *graph.Node {
	return graph.BroadcastPrefix(graph.Slice(table, graph.AxisRange(0, s.length())), s.batch())
}

func (s whole) rope(of rotary.Rotary) attention.Rope {
	return attention.NewRope(graph.Iota(s.tokens.Graph(), shapes.Make(dtypes.Int32, 1, s.length()), 1), of)
}
