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

// capped is limit*tanh(x/limit), x itself for a limit of 0.
func capped(x *graph.Node, limit float64) *graph.Node {
	if limit == 0 {
		return x
	}
	return graph.MulScalar(graph.Tanh(graph.MulScalar(x, 1/limit)), limit)
}

// view is how a layer looks at the past.
type view struct {
	scale  float64 // factor of scores
	limit  float64 // soft cap of scores, 0 if there is none
	window int     // tokens that a token sees, itself included; 0 is all
}

// viewOf is the view of a layer.
func viewOf(c architecture.Config, layer int) view {
	v := view{scale: 1 / math.Sqrt(float64(c.HeadDim)), limit: c.Form.ScoreCap}
	if c.Form.Scale > 0 {
		v.scale = 1 / math.Sqrt(c.Form.Scale)
	}
	if c.Form.Unscaled {
		v.scale = 1
	}
	if c.Form.ByLayer {
		v.scale /= float64(layer + 1)
	}
	if c.Form.Sliding(layer) {
		v.window = c.Form.Window
	}
	return v
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
