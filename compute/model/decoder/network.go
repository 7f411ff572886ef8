// Package decoder computes language models as graphs: GPT-2, and the decoders that compute/model/architecture
// describes, from tokens to hidden states and logits. It knows no loss, and makes no programs; compute/model does.
package decoder

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/norm"
	"github.com/starling-network/starling/compute/model/sequence"
)

// network is the computation of an architecture.
type network interface {
	// hidden maps tokens [batch, length] to the input of the output layer: [batch*length, width].
	hidden(c architecture.Config, w Weights, tokens *graph.Node, s sequence.Sequence) *graph.Node
	// output is the output layer: x [n, width] to logits [n, vocab].
	output(c architecture.Config, w Weights, x *graph.Node) *graph.Node
}

func networkOf(c architecture.Config) network {
	if c.Architecture() == architecture.GPT2 {
		return gpt2Network{}
	}
	return decoderNetwork{architecture.NamesOf(c.Architecture())}
}

// Hidden maps tokens [batch, length] to the input of the output layer: [batch*length, width].
func Hidden(c architecture.Config, w Weights, tokens *graph.Node, s sequence.Sequence) *graph.Node {
	return networkOf(c).hidden(c, w, tokens, s)
}

// Output is the output layer: x [n, width] to logits [n, vocab], in float32.
func Output(c architecture.Config, w Weights, x *graph.Node) *graph.Node {
	return networkOf(c).output(c, w.Float32Only(), x)
}

// Logits maps tokens [batch, length], each sequence from its first token on, to logits [batch*length, vocab].
func Logits(c architecture.Config, w Weights, tokens *graph.Node) *graph.Node {
	return Output(c, w, Hidden(c, w, tokens, sequence.Whole{Tokens: tokens}))
}

// A hidden state is [rows, width]: one row for each token of the batch, sequence after sequence.

func dims(x *graph.Node) []int { return x.Shape().Dimensions }

// down repeats x [m] to the shape of like [n, m].
func down(x, like *graph.Node) *graph.Node { return graph.BroadcastPrefix(x, dims(like)[0]) }

// linear is x [n, in] times the transpose of w [out, in].
func linear(x, w *graph.Node) *graph.Node {
	return graph.DotGeneral(x, []int{1}, nil, w, []int{1}, nil)
}

// lookup returns the rows of table [vocab, width] for tokens [batch, length]: [batch, length, width].
func lookup(table, tokens *graph.Node) *graph.Node {
	return graph.Gather(table, graph.InsertAxes(tokens, -1))
}

// normalised is the norm with the given name, with the suffixes .weight and .bias, of x [n, m].
func (w Weights) normalised(c architecture.Config, name string, x *graph.Node) *graph.Node {
	gain := w.At(name + ".weight")
	switch c.Form.Norm {
	case architecture.LayerNorm:
		return norm.Layer(x, gain, w.At(name+".bias"), c.NormEps)
	case architecture.RMSPlus1:
		return norm.RMS(x, graph.OnePlus(gain), c.NormEps)
	}
	return norm.RMS(x, gain, c.NormEps)
}
