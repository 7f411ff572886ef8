package architecture

import "github.com/starling-network/starling/compute/model/rotary"

// Form is the differences between decoders besides their sizes. Its zero value is the form of Llama, but for Rotary.
type Form struct {
	rotary.Rotary               // of layers that see the whole past
	Local         rotary.Rotary // of layers with a window, where they have their own
	Activation    string        // a key of activations; "" is silu
	Norm          NormKind

	QKVBias, OutBias, MLPBias, HeadBias bool

	QKNorm   bool // heads of queries and keys are normalised
	Plain    bool // the feed-forward layer has no gate
	Parallel bool // attention and the feed-forward layer read the same state
	Shared   bool // and the same norm of it
	Sandwich bool // what a sublayer gives is normalised too
	After    bool // the sum is normalised, not what a sublayer reads
	Unscaled bool // scores are not divided by anything
	ByLayer  bool // scores are divided by the number of the layer too

	Scale    float64 // scores are divided by the root of it; 0: of the width of a head
	ScoreCap float64 // scores go through cap*tanh(x/cap); 0: they do not
	LogitCap float64 // logits too
	Embed    float64 // factor of the token embedding; 0: 1

	Window int    // tokens that a token sees, itself included, in layers that slide
	slides string // for each layer, one of slide and full; "" is full for all

	turns string // for each layer, 1 where a matrix multiplies the residual stream before it; "": for none

	embedding int // width of the token embedding, where the residual stream has another
	NoFinal   bool
}

// The letters of Form.slides.
const (
	slide = 's'
	full  = 'f'
)

// NormKind is how a state is normalised.
type NormKind uint8

const (
	RMS       NormKind = iota // x / rms(x) times the gain (Zhang and Sennrich 2019)
	RMSPlus1                  // RMS with 1 added to the gain
	LayerNorm                 // centred, scaled to variance 1, with gain and bias (Ba et al. 2016)
)

// activations are the names of the functions of feed-forward layers in config.json.
var activations = map[string]bool{"silu": true, "swish": true, "gelu_new": true, "gelu_pytorch_tanh": true,
	"gelu_fast": true, "gelu": true, "relu": true}

// Sliding reports whether a layer sees only the latest tokens.
func (f Form) Sliding(layer int) bool { return f.slides != "" && f.slides[layer] == slide }

// norms lists the tensors of a norm of n elements.
func (f Form) norms(name string, n int) []Named {
	switch f.Norm {
	case RMSPlus1:
		return []Named{Zeros(name+".weight", n)}
	case LayerNorm:
		return []Named{ones(name+".weight", n), Zeros(name+".bias", n)}
	}
	return []Named{ones(name+".weight", n)}
}
