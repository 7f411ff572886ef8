package model

import "math"

// gemmaForm is what all Gemmas have: a gain of 1 more than the weight, and an embedding scaled by the root of its
// width.
func (f *fields) gemmaForm(c *Config) {
	c.form.norm = rmsPlus1
	c.form.embed = float64(float32(math.Sqrt(float64(c.width))))
	c.form.qkvBias = f.flag("attention_bias", false)
	c.form.outBias = c.form.qkvBias
	// hidden_act of the first files says gelu, and means the tanh form.
	f.ignore("hidden_act")
	c.form.activation = word(f, "hidden_activation", "gelu_pytorch_tanh", activations)
}

// gemma is Gemma 1 (Gemma Team 2024).
func (f *fields) gemma(c *Config) {
	f.readSizes(c, extents{vocab: 256000, positions: 8192, width: 3072, inner: 24576, layers: 28, heads: 16,
		epsKey: "rms_norm_eps", eps: 1e-6, tied: true})
	f.readHeads(c, c.heads, 256)
	c.form.rotary = f.readRotary(c, 10000, 1)
	f.gemmaForm(c)
}

// caps reads what Gemma 2 and 3 have besides.
func (f *fields) caps(c *Config, attention, logits float64) {
	c.form.sandwich = true
	c.form.scale = f.positive("query_pre_attn_scalar", 256, 1e6)
	read := func(key string, fallback float64) float64 {
		if _, ok := f.raw[key]; ok {
			return f.optional(key, 1e6)
		}
		return fallback
	}
	c.form.scoreCap = read("attn_logit_softcapping", attention)
	c.form.logitCap = read("final_logit_softcapping", logits)
	f.only("use_bidirectional_attention", false)
}

func (f *fields) gemma2(c *Config) {
	f.readSizes(c, extents{vocab: 256000, positions: 8192, width: 2304, inner: 9216, layers: 26, heads: 8,
		epsKey: "rms_norm_eps", eps: 1e-6, tied: true})
	f.readHeads(c, min(4, c.heads), 256)
	c.form.rotary = f.readRotary(c, 10000, 1)
	f.gemmaForm(c)
	f.caps(c, 50, 30)
	f.readWindow(c, 4096, func(layer int) bool { return layer%2 == 0 })
	f.only("cache_implementation", "hybrid")
}

// gemma3 is the language model of Gemma 3. Layers that slide have positions of their own.
func (f *fields) gemma3(c *Config) {
	f.readSizes(c, extents{vocab: 262208, positions: 131072, width: 2304, inner: 9216, layers: 26, heads: 8,
		epsKey: "rms_norm_eps", eps: 1e-6, tied: true})
	f.readHeads(c, min(4, c.heads), 256)
	c.form.local = rotary{theta: f.positive("rope_local_base_freq", 10000, 1e12), dim: c.headDim}
	c.form.rotary = f.readGemma3Rotary(c)
	f.gemmaForm(c)
	f.caps(c, 0, 0)
	c.form.qkNorm = true
	pattern := f.size("sliding_window_pattern", 6, maxLayers, "_sliding_window_pattern")
	f.readWindow(c, 4096, func(layer int) bool { return (layer+1)%pattern != 0 })
	if c.form.window == 0 {
		c.form.local = rotary{}
	}
	f.ignore("cache_implementation")
}

// readGemma3Rotary reads the positions of both kinds of layers, which newer files keep apart.
func (f *fields) readGemma3Rotary(c *Config) (r rotary) {
	both, _ := f.raw["rope_parameters"].(map[string]any)
	if both["full_attention"] == nil {
		return f.readRotary(c, 1e6, 1)
	}
	f.group("rope_parameters", func(inner *fields) {
		inner.group("full_attention", func(x *fields) {
			r.theta, r.dim = x.positive("rope_theta", 1e6, 1e12), c.headDim
			r.scaling = x.readScaling(c.positions)
		})
		inner.group("sliding_attention", func(x *fields) {
			c.form.local.theta = x.positive("rope_theta", 10000, 1e12)
			x.only("rope_type", "default")
		})
	})
	f.ignore("rope_theta", "rope_scaling")
	return r
}
