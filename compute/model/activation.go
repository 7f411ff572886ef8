package model

import (
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/record"
)

// functions are the activations of feed-forward layers, by the names that architecture.Config may have.
var functions = map[string]func(x *graph.Node) *graph.Node{
	"silu": record.Silu, "swish": record.Silu,
	"gelu_new": record.Gelu, "gelu_pytorch_tanh": record.Gelu, "gelu_fast": record.Gelu,
	"gelu": exactGelu, "relu": relu,
}

// exactGelu is x * Phi(x) by the error function (Hendrycks and Gimpel 2016).
func exactGelu(x *graph.Node) *graph.Node {
	twice := graph.OnePlus(graph.Erf(graph.MulScalar(x, math.Sqrt(0.5))))
	return graph.Mul(graph.MulScalar(x, 0.5), twice)
}

// activate applies the activation of a form.
func activate(f architecture.Form, x *graph.Node) *graph.Node {
	if f.Activation == "" {
		return record.Silu(x)
	}
	return functions[f.Activation](x)
}

// normalised is the norm with the given name, with the suffixes .weight and .bias, of x [n, m].
func (w weights) normalised(c architecture.Config, name string, x *graph.Node) *graph.Node {
	gain := w.at(name + ".weight")
	switch c.Form.Norm {
	case architecture.LayerNorm:
		return layerNorm(x, gain, w.at(name+".bias"), c.NormEps)
	case architecture.RMSPlus1:
		return rmsNorm(x, graph.OnePlus(gain), c.NormEps)
	}
	return rmsNorm(x, gain, c.NormEps)
}

func relu(x *graph.Node) *graph.Node {
	return graph.Max(x, graph.ScalarZero(x.Graph(), dtypes.Float32))
}
