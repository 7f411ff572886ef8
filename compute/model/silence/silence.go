// Package silence is tokens in graphs that are read and not to be predicted: each is the token that it stands for plus
// a number, the size of a vocabulary. Package compute/data marks them.
package silence

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Heard are tokens with those in place that silent ones, from a number on, stand for; 0: none are silent.
func Heard(tokens *graph.Node, silent int) *graph.Node {
	if silent == 0 {
		return tokens
	}
	return graph.Where(is(tokens, silent), graph.AddScalar(tokens, -silent), tokens)
}

// Spoken is 1 for each token that is to be predicted, and 0 for others.
func Spoken(tokens *graph.Node, silent int) *graph.Node {
	return graph.ConvertDType(graph.LogicalNot(is(tokens, silent)), dtypes.Float32)
}

func is(tokens *graph.Node, silent int) *graph.Node {
	return graph.GreaterOrEqual(tokens, graph.Scalar(tokens.Graph(), dtypes.Int32, silent))
}
