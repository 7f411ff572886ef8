package model

import (
	"math"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/record"
)

// form is what differs between decoders besides their sizes. Its zero value is the form of Llama, but for rotary.
type form struct {
	rotary            // of layers that see the whole past
	local      rotary // of layers with a window, where they have their own
	activation string // a key of activations; "" is silu
	norm       normKind

	qkvBias, outBias, mlpBias, headBias bool

	qkNorm   bool // heads of queries and keys are normalised
	plain    bool // the feed-forward layer has no gate
	parallel bool // attention and the feed-forward layer read the same state
	shared   bool // and the same norm of it
	sandwich bool // what a sublayer gives is normalised too
	after    bool // the sum is normalised, not what a sublayer reads
	unscaled bool // scores are not divided by anything
	byLayer  bool // scores are divided by the number of the layer too

	scale    float64 // scores are divided by the root of it; 0: of the width of a head
	scoreCap float64 // scores go through cap*tanh(x/cap); 0: they do not
	logitCap float64 // logits too
	embed    float64 // factor of the token embedding; 0: 1

	window int    // tokens that a token sees, itself included, in layers that slide
	slides string // for each layer, one of slide and full; "" is full for all

	embedding int // width of the token embedding, where the residual stream has another
	noFinal   bool
}

// The letters of form.slides.
const (
	slide = 's'
	full  = 'f'
)

// normKind is how a state is normalised.
type normKind uint8

const (
	rms      normKind = iota // rmsNorm
	rmsPlus1                 // rmsNorm with 1 added to the gain
	layers                   // layerNorm
)

// activations are the functions of feed-forward layers by their names in config.json.
var activations = map[string]func(x *graph.Node) *graph.Node{
	"silu": record.Silu, "swish": record.Silu,
	"gelu_new": record.Gelu, "gelu_pytorch_tanh": record.Gelu, "gelu_fast": record.Gelu,
	"gelu": exactGelu, "relu": relu,
}

// exactGelu is x * Phi(x) by the error function (Hendrycks and Gimpel 2016).
func exactGelu(x *graph.Node) *graph.Node {
	twice := graph.OnePlus(graph.Erf(graph.MulScalar(x, math.Sqrt(0.5))))
	return graph.Mul(graph.MulScalar(x, 0.5), twice)
}

// activate applies the activation.
func (f form) activate(x *graph.Node) *graph.Node {
	if f.activation == "" {
		return record.Silu(x)
	}
	return activations[f.activation](x)
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
func (c Config) viewOf(layer int) view {
	v := view{scale: 1 / math.Sqrt(float64(c.headDim)), limit: c.form.scoreCap}
	if c.form.scale > 0 {
		v.scale = 1 / math.Sqrt(c.form.scale)
	}
	if c.form.unscaled {
		v.scale = 1
	}
	if c.form.byLayer {
		v.scale /= float64(layer + 1)
	}
	if c.form.sliding(layer) {
		v.window = c.form.window
	}
	return v
}

// sliding reports whether a layer sees only the latest tokens.
func (f form) sliding(layer int) bool { return f.slides != "" && f.slides[layer] == slide }

// normalised is the norm with the given name, with the suffixes .weight and .bias, of x [n, m].
func (w weights) normalised(c Config, name string, x *graph.Node) *graph.Node {
	gain := w.at(name + ".weight")
	switch c.form.norm {
	case layers:
		return layerNorm(x, gain, w.at(name+".bias"), c.normEps)
	case rmsPlus1:
		return rmsNorm(x, graph.OnePlus(gain), c.normEps)
	}
	return rmsNorm(x, gain, c.normEps)
}

// norms lists the tensors of a norm of n elements.
func (f form) norms(name string, n int) []Named {
	switch f.norm {
	case rmsPlus1:
		return []Named{zeros(name+".weight", n)}
	case layers:
		return []Named{ones(name+".weight", n), zeros(name+".bias", n)}
	}
	return []Named{ones(name+".weight", n)}
}
