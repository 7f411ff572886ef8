package model

import (
	"fmt"
	"strings"
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
func (f *fields) readSizes(c *Config, s extents) {
	c.vocab = f.size("vocab_size", s.vocab, maxVocab)
	c.positions = f.size("max_position_embeddings", s.positions, maxPositions)
	c.width = f.size("hidden_size", s.width, maxWidth)
	if s.innerKey == "" {
		s.innerKey = "intermediate_size"
	}
	c.inner = f.size(s.innerKey, s.inner, 4*maxWidth)
	c.layers = f.size("num_hidden_layers", s.layers, maxLayers)
	c.heads = f.size("num_attention_heads", s.heads, maxWidth)
	c.kvHeads = c.heads
	if s.epsKey != "" {
		c.normEps = f.positive(s.epsKey, s.eps, 1)
	}
	c.tied = f.flag("tie_word_embeddings", s.tied)
	f.dropouts()
	f.ignore("pretraining_tp")
}

// dropouts accepts dropout in a published file, which says how it was trained, and none in another.
func (f *fields) dropouts() {
	for _, key := range []string{"attention_dropout", "hidden_dropout", "resid_pdrop", "embd_pdrop", "dropout",
		"layerdrop"} {
		if !f.published && f.raw[key] != nil {
			f.only(key, 0)
		}
		f.ignore(key)
	}
}

// readHeads reads the heads of keys and values and the width of all; fallback 0 is the width over the heads.
func (f *fields) readHeads(c *Config, kvHeads, headDim int) {
	c.kvHeads = f.size("num_key_value_heads", kvHeads, maxWidth)
	if c.heads%c.kvHeads != 0 {
		f.fail("num_key_value_heads", fmt.Sprintf("%d does not divide num_attention_heads %d", c.kvHeads, c.heads),
			f.advice("choose a divisor"))
	}
	if headDim > 0 {
		c.headDim = f.size("head_dim", headDim, maxHeadDim)
	} else {
		c.headDim = f.size("head_dim", max(1, c.width/c.heads), maxHeadDim)
		f.dividedHeads(c, ", or set head_dim")
	}
	if c.headDim%2 != 0 || c.headDim > maxHeadDim {
		f.fail("head_dim", fmt.Sprintf("%d is odd, or above %d; rotary positions turn pairs", c.headDim, maxHeadDim),
			f.advice("choose an even size, or more heads"))
	}
}

// dividedHeads makes sure that heads of no given width divide the width of the model.
func (f *fields) dividedHeads(c *Config, besides string) {
	if f.raw["head_dim"] == nil && c.width%c.heads != 0 {
		f.fail("num_attention_heads", fmt.Sprintf("%d heads do not divide hidden_size %d", c.heads, c.width),
			f.advice("choose a divisor"+besides))
	}
}

// readWindow reads a window, and which layers slide: those of layer_types, or else those for which slides holds.
func (f *fields) readWindow(c *Config, fallback int, slides func(layer int) bool) {
	if _, ok := f.get("sliding_window"); ok || fallback > 0 {
		c.form.window = f.size("sliding_window", max(fallback, 1), 1<<30)
	}
	var b strings.Builder
	for i := range c.layers {
		if c.form.window > 0 && slides(i) {
			b.WriteByte(slide)
		} else {
			b.WriteByte(full)
		}
	}
	c.form.slides = b.String()
	if _, ok := f.get("layer_types"); ok {
		f.readLayerTypes(c)
	}
	if !strings.ContainsRune(c.form.slides, slide) {
		c.form.window, c.form.slides = 0, ""
	}
}

// readLayerTypes reads which layers slide.
func (f *fields) readLayerTypes(c *Config) {
	list, _ := f.raw["layer_types"].([]any)
	if len(list) != c.layers {
		f.fail("layer_types", fmt.Sprintf("%d entries for %d layers", len(list), c.layers), "write one for each layer")
		return
	}
	var b strings.Builder
	for _, kind := range list {
		switch {
		case kind == "sliding_attention" && c.form.window > 0:
			b.WriteByte(slide)
		case kind == "full_attention":
			b.WriteByte(full)
		default:
			f.fail("layer_types", fmt.Sprintf("%v is not supported", kind), f.advice("use full_attention"))
			return
		}
	}
	c.form.slides = b.String()
}

func every(int) bool { return true }

func (d decoder) parse(f *fields, c *Config) {
	switch d.architecture {
	case Llama:
		f.llama(c)
	case Mistral:
		f.mistral(c)
	case Qwen2, Qwen3:
		f.qwen(c, d.architecture == Qwen3)
	case Gemma:
		f.gemma(c)
	case Gemma2:
		f.gemma2(c)
	case Gemma3:
		f.gemma3(c)
	case Phi:
		f.phi(c)
	case Phi3:
		f.phi3(c)
	case NeoX:
		f.neox(c)
	case OPT:
		f.opt(c)
	}
}

// silu reads the activation of Llama and those after it.
func (f *fields) silu(c *Config) {
	if a := word(f, "hidden_act", "silu", activations); a != "silu" && a != "swish" {
		c.form.activation = a
	}
}

func (f *fields) llama(c *Config) {
	f.readSizes(c, extents{vocab: 32000, positions: 2048, width: 4096, inner: 11008, layers: 32, heads: 32,
		epsKey: "rms_norm_eps", eps: 1e-6})
	f.readHeads(c, c.heads, 0)
	c.form.rotary = f.readRotary(c, 10000, 1)
	f.silu(c)
	c.form.qkvBias = f.flag("attention_bias", false)
	c.form.outBias = c.form.qkvBias
	c.form.mlpBias = f.flag("mlp_bias", false)
}

func (f *fields) mistral(c *Config) {
	f.readSizes(c, extents{vocab: 32000, positions: 4096 * 32, width: 4096, inner: 14336, layers: 32, heads: 32,
		epsKey: "rms_norm_eps", eps: 1e-6})
	f.readHeads(c, min(8, c.heads), 0)
	c.form.rotary = f.readRotary(c, 10000, 1)
	f.silu(c)
	f.readWindow(c, 0, every)
}

func (f *fields) qwen(c *Config, third bool) {
	s := extents{vocab: 151936, positions: 32768, width: 4096, inner: 22016, layers: 32, heads: 32,
		epsKey: "rms_norm_eps", eps: 1e-6}
	f.readSizes(c, s)
	if third {
		f.readHeads(c, c.heads, 128)
		c.form.qkvBias = f.flag("attention_bias", false)
		c.form.outBias, c.form.qkNorm = c.form.qkvBias, true
	} else {
		f.readHeads(c, c.heads, 0)
		c.form.qkvBias = true
	}
	c.form.rotary = f.readRotary(c, 10000, 1)
	f.silu(c)
	after := 0
	if v, ok := f.get("max_window_layers"); ok {
		if n, isNumber := integer(v); !isNumber || n != 0 {
			after = f.size("max_window_layers", 28, maxLayers)
		}
	}
	if f.flag("use_sliding_window", false) {
		f.readWindow(c, 0, func(layer int) bool { return layer >= after })
		return
	}
	f.ignore("sliding_window")
	c.form.window = 0
	if _, ok := f.get("layer_types"); ok {
		f.readLayerTypes(c)
		c.form.slides = ""
	}
}

// phi is Phi 1, 1.5 and 2.
func (f *fields) phi(c *Config) {
	f.readSizes(c, extents{vocab: 51200, positions: 2048, width: 2048, inner: 8192, layers: 24, heads: 32,
		epsKey: "layer_norm_eps", eps: 1e-5})
	f.readHeads(c, c.heads, 0)
	c.form.rotary = f.readRotary(c, 10000, 0.5)
	c.form.activation = word(f, "hidden_act", "gelu_new", activations)
	f.only("qk_layernorm", false)
	c.form.norm, c.form.plain, c.form.parallel, c.form.shared = layers, true, true, true
	c.form.qkvBias, c.form.outBias, c.form.mlpBias, c.form.headBias = true, true, true, true
}

// phi3 is Phi 3 and 4, of those that do not scale positions by a table.
func (f *fields) phi3(c *Config) {
	f.readSizes(c, extents{vocab: 32064, positions: 4096, width: 3072, inner: 8192, layers: 32, heads: 32,
		epsKey: "rms_norm_eps", eps: 1e-5})
	f.readHeads(c, c.heads, 0)
	c.form.rotary = f.readRotary(c, 10000, 1)
	f.ignore("original_max_position_embeddings")
	f.only("attention_bias", false)
	f.silu(c)
	f.readWindow(c, 0, every)
}

// neox is GPT-NeoX (Black et al. 2022) and Pythia.
func (f *fields) neox(c *Config) {
	f.readSizes(c, extents{vocab: 50432, positions: 2048, width: 6144, inner: 24576, layers: 44, heads: 64,
		epsKey: "layer_norm_eps", eps: 1e-5})
	f.dividedHeads(c, "")
	c.headDim = c.width / c.heads
	theta := f.positive("rotary_emb_base", 10000, 1e12)
	part := f.positive("rotary_pct", 0.25, 1)
	c.form.rotary = f.readRotary(c, theta, part)
	c.form.activation = word(f, "hidden_act", "gelu", activations)
	c.form.norm, c.form.plain = layers, true
	c.form.parallel = f.flag("use_parallel_residual", true)
	c.form.qkvBias = f.flag("attention_bias", true)
	c.form.outBias, c.form.mlpBias = c.form.qkvBias, true
}

// opt is OPT (Zhang et al. 2022).
func (f *fields) opt(c *Config) {
	f.readSizes(c, extents{vocab: 50272, positions: 2048, width: 768, inner: 3072, innerKey: "ffn_dim", layers: 12,
		heads: 12,
		tied:  true})
	f.dividedHeads(c, "")
	c.headDim = c.width / c.heads
	c.normEps = 1e-5
	if n := f.size("word_embed_proj_dim", c.width, maxWidth); n != c.width {
		c.form.embedding = n
	}
	c.form.activation = word(f, "activation_function", "relu", activations)
	c.form.norm, c.form.plain = layers, true
	bias := f.flag("enable_bias", true)
	c.form.qkvBias, c.form.outBias, c.form.mlpBias = bias, bias, bias
	f.only("layer_norm_elementwise_affine", true)
	c.form.after = !f.flag("do_layer_norm_before", true)
	removed := f.flag("_remove_final_layer_norm", false)
	c.form.noFinal = removed || c.form.after
	f.ignore("activation_dropout")
}
