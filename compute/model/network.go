package model

import (
	"github.com/gomlx/gomlx/core/graph"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/sequence"
)

// network is the computation of an architecture.
type network interface {
	// hidden maps tokens [batch, length] to the input of the output layer: [batch*length, width].
	hidden(c architecture.Config, w weights, tokens *graph.Node, s sequence.Sequence) *graph.Node
	// output is the output layer: x [n, width] to logits [n, vocab].
	output(c architecture.Config, w weights, x *graph.Node) *graph.Node
}

func networkOf(c architecture.Config) network {
	if c.Architecture() == architecture.GPT2 {
		return gpt2Network{}
	}
	return decoderNetwork{architecture.NamesOf(c.Architecture())}
}

// logits maps tokens [batch, length], each sequence from its first token on, to logits [batch*length, vocab].
func logits(c architecture.Config, w weights, tokens *graph.Node) *graph.Node {
	n := networkOf(c)
	x := n.hidden(c, w, tokens, sequence.Whole{Tokens: tokens})
	return n.output(c, w.float32Only(), x)
}
