package architecture

import (
	"fmt"
	"strings"

	"github.com/starling-network/starling/compute/model/fields"
)

// extents are the keys of the sizes of a decoder, with their defaults.
type extents struct {
	vocab, positions, width, inner, layers, heads int

	innerKey string // where it is another
	epsKey   string
	eps      float64
	tied     bool
}

// readSizes reads what all decoders have.
func readSizes(f *fields.Reader, c *Config, s extents) {
	c.vocab = f.Size("vocab_size", s.vocab, maxVocab)
	c.positions = f.Size("max_position_embeddings", s.positions, maxPositions)
	c.Width = f.Size("hidden_size", s.width, maxWidth)
	if s.innerKey == "" {
		s.innerKey = "intermediate_size"
	}
	c.Inner = f.Size(s.innerKey, s.inner, 4*maxWidth)
	c.Layers = f.Size("num_hidden_layers", s.layers, maxLayers)
	c.Heads = f.Size("num_attention_heads", s.heads, maxWidth)
	c.KVHeads = c.Heads
	if s.epsKey != "" {
		c.NormEps = f.Positive(s.epsKey, s.eps, 1)
	}
	c.Tied = f.Flag("tie_word_embeddings", s.tied)
	dropouts(f)
	f.Ignore("pretraining_tp")
}

// dropouts accepts dropout in a published file, which says how it was trained, and none in another.
func dropouts(f *fields.Reader) {
	for _, key := range []string{"attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "dropout",
		"layerdrop"} {
		if !f.Published && f.Raw[key] != nil {
			f.Only(key, 0)
		}
		f.Ignore(key)
	}
}

// readHeads reads the heads of keys and values and the width of all; fallback 0 is the width over the heads.
func readHeads(f *fields.Reader, c *Config, kvHeads, headDim int) {
	c.KVHeads = f.Size("num_key_value_heads", kvHeads, maxWidth)
	if c.Heads%c.KVHeads != 0 {
		f.Fail("num_key_value_heads", fmt.Sprintf("%d does not divide num_attention_heads %d", c.KVHeads, c.Heads),
			f.Advice("choose a divisor"))
	}
	if headDim > 0 {
		c.HeadDim = f.Size("head_dim", headDim, maxHeadDim)
	} else {
		c.HeadDim = f.Size("head_dim", max(1, c.Width/c.Heads), maxHeadDim)
		dividedHeads(f, c, ", or set head_dim")
	}
	if c.HeadDim%2 != 0 || c.HeadDim > maxHeadDim {
		f.Fail("head_dim", fmt.Sprintf("%d is odd, or above %d; rotary positions turn pairs", c.HeadDim, maxHeadDim),
			f.Advice("choose an even size, or more heads"))
	}
}

// dividedHeads makes sure that heads of no given width divide the width of the model.
func dividedHeads(f *fields.Reader, c *Config, besides string) {
	if f.Raw["head_dim"] == nil && c.Width%c.Heads != 0 {
		f.Fail("num_attention_heads", fmt.Sprintf("%d heads do not divide hidden_size %d", c.Heads, c.Width),
			f.Advice("choose a divisor"+besides))
	}
}

// readWindow reads a window, and which layers slide: those of layer_types, or else those for which slides holds.
func readWindow(f *fields.Reader, c *Config, fallback int, slides func(layer int) bool) {
	if _, ok := f.Get("sliding_window"); ok || fallback > 0 {
		c.Form.Window = f.Size("sliding_window", max(fallback, 1), 1<<30)
	}
	var b strings.Builder
	for i := range c.Layers {
		if c.Form.Window > 0 && slides(i) {
			b.WriteByte(slide)
		} else {
			b.WriteByte(full)
		}
	}
	c.Form.slides = b.String()
	if _, ok := f.Get("layer_types"); ok {
		readLayerTypes(f, c)
	}
	if !strings.ContainsRune(c.Form.slides, slide) {
		c.Form.Window, c.Form.slides = 0, ""
	}
}

// readLayerTypes reads which layers slide.
func readLayerTypes(f *fields.Reader, c *Config) {
	list, _ := f.Raw["layer_types"].([]any)
	if len(list) != c.Layers {
		f.Fail("layer_types", fmt.Sprintf("%d entries for %d layers", len(list), c.Layers), "write one for each layer")
		return
	}
	var b strings.Builder
	for _, kind := range list {
		switch {
		case kind == "sliding_attention" && c.Form.Window > 0:
			b.WriteByte(slide)
		case kind == "full_attention":
			b.WriteByte(full)
		default:
			f.Fail("layer_types", fmt.Sprintf("%v is not supported", kind), f.Advice("use full_attention"))
			return
		}
	}
	c.Form.slides = b.String()
}

func every(int) bool { return true }

func (d decoder) parse(f *fields.Reader, c *Config) {
	switch d.architecture {
	case Llama:
		llama(f, c)
	case Mistral:
		mistral(f, c)
	case Qwen2, Qwen3:
		qwen(f, c, d.architecture == Qwen3)
	case Gemma:
		gemma(f, c)
	case Gemma2:
		gemma2(f, c)
	case Gemma3:
		gemma3(f, c)
	case Phi:
		phi(f, c)
	case Phi3:
		phi3(f, c)
	case NeoX:
		neox(f, c)
	case OPT:
		opt(f, c)
	}
}

// silu reads the activation of Llama and those after it.
func silu(f *fields.Reader, c *Config) {
	if a := fields.Word(f, "hidden_act", "silu", activations); a != "silu" && a != "swish" {
		c.Form.Activation = a
	}
}

func llama(f *fields.Reader, c *Config) {
	readSizes(f, c, extents{vocab: 32000, positions: 2048, width: 4096, inner: 11008, layers: 32, heads: 32,
		epsKey: "rms_norm_eps", eps: 1e-6})
	readTurns(f, c)
	readHeads(f, c, c.Heads, 0)
	c.Form.Rotary = readRotary(f, c, 10000, 1)
	silu(f, c)
	c.Form.QKVBias = f.Flag("attention_bias", false)
	c.Form.OutBias = c.Form.QKVBias
	c.Form.MLPBias = f.Flag("mlp_bias", false)
}

func mistral(f *fields.Reader, c *Config) {
	readSizes(f, c, extents{vocab: 32000, positions: 4096 * 32, width: 4096, inner: 14336, layers: 32, heads: 32,
		epsKey: "rms_norm_eps", eps: 1e-6})
	readTurns(f, c)
	readHeads(f, c, min(8, c.Heads), 0)
	c.Form.Rotary = readRotary(f, c, 10000, 1)
	silu(f, c)
	readWindow(f, c, 0, every)
}

func qwen(f *fields.Reader, c *Config, third bool) {
	s := extents{vocab: 151936, positions: 32768, width: 4096, inner: 22016, layers: 32, heads: 32,
		epsKey: "rms_norm_eps", eps: 1e-6}
	readSizes(f, c, s)
	readTurns(f, c)
	if third {
		readHeads(f, c, c.Heads, 128)
		c.Form.QKVBias = f.Flag("attention_bias", false)
		c.Form.OutBias, c.Form.QKNorm = c.Form.QKVBias, true
	} else {
		readHeads(f, c, c.Heads, 0)
		c.Form.QKVBias = true
	}
	c.Form.Rotary = readRotary(f, c, 10000, 1)
	silu(f, c)
	after := 0
	if v, ok := f.Get("max_window_layers"); ok {
		if n, isNumber := fields.Integer(v); !isNumber || n != 0 {
			after = f.Size("max_window_layers", 28, maxLayers)
		}
	}
	if f.Flag("use_sliding_window", false) {
		readWindow(f, c, 0, func(layer int) bool { return layer >= after })
		return
	}
	f.Ignore("sliding_window")
	c.Form.Window = 0
	if _, ok := f.Get("layer_types"); ok {
		readLayerTypes(f, c)
		c.Form.slides = ""
	}
}

// phi is Phi 1, 1.5 and 2.
func phi(f *fields.Reader, c *Config) {
	readSizes(f, c, extents{vocab: 51200, positions: 2048, width: 2048, inner: 8192, layers: 24, heads: 32,
		epsKey: "layer_norm_eps", eps: 1e-5})
	readHeads(f, c, c.Heads, 0)
	c.Form.Rotary = readRotary(f, c, 10000, 0.5)
	c.Form.Activation = fields.Word(f, "hidden_act", "gelu_new", activations)
	f.Only("qk_layernorm", false)
	c.Form.Norm, c.Form.Plain, c.Form.Parallel, c.Form.Shared = LayerNorm, true, true, true
	c.Form.QKVBias, c.Form.OutBias, c.Form.MLPBias, c.Form.HeadBias = true, true, true, true
}

// phi3 is Phi 3 and 4, of those that do not scale positions by a table.
func phi3(f *fields.Reader, c *Config) {
	readSizes(f, c, extents{vocab: 32064, positions: 4096, width: 3072, inner: 8192, layers: 32, heads: 32,
		epsKey: "rms_norm_eps", eps: 1e-5})
	readHeads(f, c, c.Heads, 0)
	c.Form.Rotary = readRotary(f, c, 10000, 1)
	f.Ignore("original_max_position_embeddings")
	f.Only("attention_bias", false)
	silu(f, c)
	readWindow(f, c, 0, every)
}

// neox is GPT-NeoX (Black et al. 2022) and Pythia.
func neox(f *fields.Reader, c *Config) {
	readSizes(f, c, extents{vocab: 50432, positions: 2048, width: 6144, inner: 24576, layers: 44, heads: 64,
		epsKey: "layer_norm_eps", eps: 1e-5})
	dividedHeads(f, c, "")
	c.HeadDim = c.Width / c.Heads
	theta := f.Positive("rotary_emb_base", 10000, 1e12)
	part := f.Positive("rotary_pct", 0.25, 1)
	c.Form.Rotary = readRotary(f, c, theta, part)
	c.Form.Activation = fields.Word(f, "hidden_act", "gelu", activations)
	c.Form.Norm, c.Form.Plain = LayerNorm, true
	c.Form.Parallel = f.Flag("use_parallel_residual", true)
	c.Form.QKVBias = f.Flag("attention_bias", true)
	c.Form.OutBias, c.Form.MLPBias = c.Form.QKVBias, true
}

// opt is OPT (Zhang et al. 2022).
func opt(f *fields.Reader, c *Config) {
	readSizes(f, c, extents{vocab: 50272, positions: 2048, width: 768, inner: 3072, innerKey: "ffn_dim", layers: 12,
		heads: 12,
		tied:  true})
	dividedHeads(f, c, "")
	c.HeadDim = c.Width / c.Heads
	c.NormEps = 1e-5
	if n := f.Size("word_embed_proj_dim", c.Width, maxWidth); n != c.Width {
		c.Form.embedding = n
	}
	c.Form.Activation = fields.Word(f, "activation_function", "relu", activations)
	c.Form.Norm, c.Form.Plain = LayerNorm, true
	bias := f.Flag("enable_bias", true)
	c.Form.QKVBias, c.Form.OutBias, c.Form.MLPBias = bias, bias, bias
	f.Only("layer_norm_elementwise_affine", true)
	c.Form.After = !f.Flag("do_layer_norm_before", true)
	removed := f.Flag("_remove_final_layer_norm", false)
	c.Form.NoFinal = removed || c.Form.After
	f.Ignore("activation_dropout")
}
