package architecture

import (
	"fmt"

	"github.com/starling-network/starling/compute/model/fields"
	"github.com/starling-network/starling/compute/model/rotary"
)

// readRotary reads the keys of rotary positions. Newer files hold all of them in rope_parameters.
func readRotary(f *fields.Reader, c *Config, theta, part float64) rotary.Rotary {
	r := rotary.Rotary{Theta: f.Positive("rope_theta", theta, 1e12)}
	part = f.Positive("partial_rotary_factor", part, 1)
	read := func(inner *fields.Reader) {
		r.Theta = inner.Positive("rope_theta", r.Theta, 1e12)
		part = inner.Positive("partial_rotary_factor", part, 1)
		r.Scaling = readScaling(inner, c.positions)
	}
	f.Group("rope_scaling", read)
	f.Group("rope_parameters", read)
	r.Dim = int(float64(float64(c.HeadDim)*part) + 1e-6)
	if r.Dim < 2 || r.Dim%2 != 0 {
		f.Fail("partial_rotary_factor", fmt.Sprintf("%g of heads of %d leaves no even number of elements", part, c.HeadDim),
			f.Advice("choose one that does"))
		r.Dim = 2
	}
	return r
}

// readScaling reads the keys next to rope_type, as transformers names them.
func readScaling(f *fields.Reader, positions int) (s rotary.Scaling) {
	kind := fields.Word(f, "type", "default", scalings) // the older name of the key
	kind = fields.Word(f, "rope_type", kind, scalings)
	if kind == "default" {
		return s
	}
	if kind == "dynamic" {
		f.Ignore("factor", "original_max_position_embeddings")
		return s
	}
	s = rotary.Scaling{Kind: kind, Factor: f.Positive("factor", 1, 1e6)}
	if kind == "linear" {
		return s
	}
	s.Original = f.Size("original_max_position_embeddings", positions, maxPositions)
	if kind == "llama3" {
		s.Low, s.High = f.Positive("low_freq_factor", 1, 1e6), f.Positive("high_freq_factor", 4, 1e6)
		if s.High <= s.Low {
			f.Fail("high_freq_factor", "it is not above low_freq_factor", "write a larger one")
		}
		return s
	}
	s.Fast, s.Slow = f.Positive("beta_fast", 32, 1e6), f.Positive("beta_slow", 1, 1e6)
	s.Whole = !f.Flag("truncate", true)
	given, m, all := f.Optional("attention_factor", 1e6), f.Optional("mscale", 1e6), f.Optional("mscale_all_dim", 1e6)
	switch {
	case given > 0:
		s.Length = given
	case m > 0 && all > 0:
		s.Length = s.Stretch(m) / s.Stretch(all)
	default:
		s.Length = s.Stretch(1)
	}
	return s
}

// rotaryJSON writes the keys that readRotary reads.
func rotaryJSON(r rotary.Rotary, keys map[string]any, headDim int) {
	keys["rope_theta"] = r.Theta
	if r.Dim != headDim {
		keys["partial_rotary_factor"] = float64(r.Dim) / float64(headDim)
	}
	s := map[string]any{"rope_type": r.Kind, "factor": r.Factor}
	switch r.Kind {
	case "":
		return
	case "llama3":
		s["low_freq_factor"], s["high_freq_factor"] = r.Low, r.High
		s["original_max_position_embeddings"] = r.Original
	case "yarn":
		s["beta_fast"], s["beta_slow"], s["attention_factor"] = r.Fast, r.Slow, r.Length
		s["original_max_position_embeddings"], s["truncate"] = r.Original, !r.Whole
	}
	keys["rope_scaling"] = s
}

// RotaryFactors returns by how much the scaling of Llama 3 slows each pair of a head, and nil for a model without it.
func (c Config) RotaryFactors() []float32 {
	if c.Form.Rotary.Kind != "llama3" {
		return nil
	}
	plain := c.Form.Rotary
	plain.Scaling = rotary.Scaling{}
	factors := make([]float32, plain.Dim/2)
	for i, scaled := range c.Form.Rotary.Frequencies() {
		factors[i] = plain.Frequencies()[i] / scaled
	}
	return factors
}

// scalings are the values of rope_type. "dynamic" changes nothing within the positions of a model, beyond which this
// package does not go.
var scalings = map[string]bool{"default": true, "linear": true, "llama3": true, "yarn": true, "dynamic": true}
