package architecture

import (
	"math"

	"github.com/starling-network/starling/compute/model/fields"
	"github.com/starling-network/starling/compute/model/rotary"
)

// gemmaForm is what all Gemmas have: a gain of 1 more than the weight, and an embedding scaled by the root of its
// width.
func gemmaForm(f *fields.Reader, c *Config) {
	c.Form.Norm = RMSPlus1
	c.Form.Embed = float64(float32(math.Sqrt(float64(c.Width))))
	c.Form.QKVBias = f.Flag("attention_bias", false)
	c.Form.OutBias = c.Form.QKVBias
	// hidden_act of the first files says gelu, and means the tanh form.
	f.Ignore("hidden_act")
	c.Form.Activation = fields.Word(f, "hidden_activation", "gelu_pytorch_tanh", activations)
}

// gemma is Gemma 1 (Gemma Team 2024).
func gemma(f *fields.Reader, c *Config) {
	readSizes(f, c, extents{vocab: 256000, positions: 8192, width: 3072, inner: 24576, layers: 28, heads: 16,
		epsKey: "rms_norm_eps", eps: 1e-6, tied: true})
	readHeads(f, c, c.Heads, 256)
	c.Form.Rotary = readRotary(f, c, 10000, 1)
	gemmaForm(f, c)
}

// caps reads what Gemma 2 and 3 have besides.
func caps(f *fields.Reader, c *Config, attention, logits float64) {
	c.Form.Sandwich = true
	c.Form.Scale = f.Positive("query_pre_attn_scalar", 256, 1e6)
	read := func(key string, fallback float64) float64 {
		if _, ok := f.Raw[key]; ok {
			return f.Optional(key, 1e6)
		}
		return fallback
	}
	c.Form.ScoreCap = read("attn_logit_softcapping", attention)
	c.Form.LogitCap = read("final_logit_softcapping", logits)
	f.Only("use_bidirectional_attention", false)
}

func gemma2(f *fields.Reader, c *Config) {
	readSizes(f, c, extents{vocab: 256000, positions: 8192, width: 2304, inner: 9216, layers: 26, heads: 8,
		epsKey: "rms_norm_eps", eps: 1e-6, tied: true})
	readHeads(f, c, min(4, c.Heads), 256)
	c.Form.Rotary = readRotary(f, c, 10000, 1)
	gemmaForm(f, c)
	caps(f, c, 50, 30)
	readWindow(f, c, 4096, func(layer int) bool { return layer%2 == 0 })
	f.Only("cache_implementation", "hybrid")
}

// gemma3 is the language model of Gemma 3. Layers that slide have positions of their own.
func gemma3(f *fields.Reader, c *Config) {
	readSizes(f, c, extents{vocab: 262208, positions: 131072, width: 2304, inner: 9216, layers: 26, heads: 8,
		epsKey: "rms_norm_eps", eps: 1e-6, tied: true})
	readHeads(f, c, min(4, c.Heads), 256)
	c.Form.Local = rotary.Rotary{Theta: f.Positive("rope_local_base_freq", 10000, 1e12), Dim: c.HeadDim}
	c.Form.Rotary = readGemma3Rotary(f, c)
	gemmaForm(f, c)
	caps(f, c, 0, 0)
	c.Form.QKNorm = true
	pattern := f.Size("sliding_window_pattern", 6, maxLayers, "_sliding_window_pattern")
	readWindow(f, c, 4096, func(layer int) bool { return (layer+1)%pattern != 0 })
	if c.Form.Window == 0 {
		c.Form.Local = rotary.Rotary{}
	}
	f.Ignore("cache_implementation")
}

// readGemma3Rotary reads the positions of both kinds of layers, which newer files keep apart.
func readGemma3Rotary(f *fields.Reader, c *Config) (r rotary.Rotary) {
	both, _ := f.Raw["rope_parameters"].(map[string]any)
	if both["full_attention"] == nil {
		return readRotary(f, c, 1e6, 1)
	}
	f.Group("rope_parameters", func(inner *fields.Reader) {
		inner.Group("full_attention", func(x *fields.Reader) {
			r.Theta, r.Dim = x.Positive("rope_theta", 1e6, 1e12), c.HeadDim
			r.Scaling = readScaling(x, c.positions)
		})
		inner.Group("sliding_attention", func(x *fields.Reader) {
			c.Form.Local.Theta = x.Positive("rope_theta", 10000, 1e12)
			x.Only("rope_type", "default")
		})
	})
	f.Ignore("rope_theta", "rope_scaling")
	return r
}
