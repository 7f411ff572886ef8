// Package activation has the activations of feed-forward layers, by the names that a config.json gives them.
package activation

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/record"
)

// functions are the activations by the names that architecture.Config may have.
var functions = map[string]func(x *graph.Node) *graph.Node{
	"silu": record.Silu, "swish": record.Silu,
	"gelu_new": record.Gelu, "gelu_pytorch_tanh": record.Gelu, "gelu_fast": record.Gelu,
	"gelu": exactGelu, "relu": relu,
}

// Apply applies the activation of a form to float32 x of any shape.
func Apply(f architecture.Form, x *graph.Node) *graph.Node {
	if f.Activation == "" {
		return record.Silu(x)
	}
	return functions[f.Activation](x)
}

// exactGelu is x * Phi(x) by the error function (Hendrycks and Gimpel 2016).
func exactGelu(x *graph.Node) *graph.Node {
	twice := graph.OnePlus(graph.Erf(graph.MulScalar(x, math.Sqrt(0.5))))
	return graph.Mul(graph.MulScalar(x, 0.5), twice)
}

func relu(x *graph.Node) *graph.Node {
	return graph.Max(x, graph.ScalarZero(x.Graph(), dtypes.Float32))
}
