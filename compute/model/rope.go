package model

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/detmath"
)

// scaling stretches rotary positions beyond those that a model was first trained on. Its zero value changes nothing.
type scaling struct {
	kind     string  // one of scalings
	factor   float64 // positions are so many times as many
	original int     // positions before
	low      float64 // llama3: turns within the original positions below which a pair is slowed by the whole factor
	high     float64 // llama3: and above which it is not
	fast     float64 // yarn: as high
	slow     float64 // yarn: as low
	whole    bool    // yarn: the pairs where slowing begins and ends are not rounded
	length   float64 // yarn: factor of the rotated vectors
}

// scalings are the values of rope_type. "dynamic" changes nothing within the positions of a model, beyond which this
// package does not go.
var scalings = map[string]bool{"default": true, "linear": true, "llama3": true, "yarn": true, "dynamic": true}

// rotary is what the positions of a layer are turned by.
type rotary struct {
	theta float64
	dim   int // elements of a head that are turned, an even number; the others stay
	scaling
}

// readRotary reads the keys of rotary positions. Newer files hold all of them in rope_parameters.
func (f *fields) readRotary(c *Config, theta, part float64) rotary {
	r := rotary{theta: f.positive("rope_theta", theta, 1e12)}
	part = f.positive("partial_rotary_factor", part, 1)
	read := func(inner *fields) {
		r.theta = inner.positive("rope_theta", r.theta, 1e12)
		part = inner.positive("partial_rotary_factor", part, 1)
		r.scaling = inner.readScaling(c.positions)
	}
	f.group("rope_scaling", read)
	f.group("rope_parameters", read)
	r.dim = int(float64(float64(c.headDim)*part) + 1e-6)
	if r.dim < 2 || r.dim%2 != 0 {
		f.fail("partial_rotary_factor", fmt.Sprintf("%g of heads of %d leaves no even number of elements", part, c.headDim),
			f.advice("choose one that does"))
		r.dim = 2
	}
	return r
}

// readScaling reads what stands beside rope_type, as transformers names it.
func (f *fields) readScaling(positions int) (s scaling) {
	kind := word(f, "type", "default", scalings) // the older name of the key
	kind = word(f, "rope_type", kind, scalings)
	if kind == "default" {
		return s
	}
	if kind == "dynamic" {
		f.ignore("factor", "original_max_position_embeddings")
		return s
	}
	s = scaling{kind: kind, factor: f.positive("factor", 1, 1e6)}
	if kind == "linear" {
		return s
	}
	s.original = f.size("original_max_position_embeddings", positions, maxPositions)
	if kind == "llama3" {
		s.low, s.high = f.positive("low_freq_factor", 1, 1e6), f.positive("high_freq_factor", 4, 1e6)
		if s.high <= s.low {
			f.fail("high_freq_factor", "it is not above low_freq_factor", "write a larger one")
		}
		return s
	}
	s.fast, s.slow = f.positive("beta_fast", 32, 1e6), f.positive("beta_slow", 1, 1e6)
	s.whole = !f.flag("truncate", true)
	given, m, all := f.optional("attention_factor", 1e6), f.optional("mscale", 1e6), f.optional("mscale_all_dim", 1e6)
	switch {
	case given > 0:
		s.length = given
	case m > 0 && all > 0:
		s.length = s.stretch(m) / s.stretch(all)
	default:
		s.length = s.stretch(1)
	}
	return s
}

// stretch is by how much attention is sharpened for the factor of the positions (Peng et al. 2023, equation 22).
func (s scaling) stretch(by float64) float64 {
	if s.factor <= 1 {
		return 1
	}
	return 1 + float64(float64(0.1*by)*detmath.Log64(s.factor))
}

// json returns the keys that readRotary reads.
func (r rotary) json(keys map[string]any, headDim int) {
	keys["rope_theta"] = r.theta
	if r.dim != headDim {
		keys["partial_rotary_factor"] = float64(r.dim) / float64(headDim)
	}
	s := map[string]any{"rope_type": r.kind, "factor": r.factor}
	switch r.kind {
	case "":
		return
	case "llama3":
		s["low_freq_factor"], s["high_freq_factor"] = r.low, r.high
		s["original_max_position_embeddings"] = r.original
	case "yarn":
		s["beta_fast"], s["beta_slow"], s["attention_factor"] = r.fast, r.slow, r.length
		s["original_max_position_embeddings"], s["truncate"] = r.original, !r.whole
	}
	keys["rope_scaling"] = s
}

// magnitude is the factor of rotated vectors.
func (r rotary) magnitude() float32 {
	if r.length == 0 {
		return 1
	}
	return float32(r.length)
}

// frequencies returns the angle by which each pair of a head turns from one position to the next.
func (r rotary) frequencies() []float32 {
	frequencies := make([]float32, r.dim/2)
	for i := range frequencies {
		exponent := float64(-2*i) / float64(r.dim)
		frequency := detmath.Exp64(float64(exponent * detmath.Log64(r.theta)))
		frequencies[i] = float32(r.scaled(frequency, i))
	}
	return frequencies
}

// scaled is the frequency of pair i after scaling.
func (r rotary) scaled(frequency float64, i int) float64 {
	slow := frequency / r.factor
	switch r.kind {
	case "linear":
		return slow
	case "llama3":
		turns := float64(float64(r.original)*frequency) / float64(2*math.Pi)
		keep := min(max((turns-r.low)/(r.high-r.low), 0), 1)
		return float64((1-keep)*slow) + float64(keep*frequency)
	case "yarn":
		keep := 1 - r.ramp(i)
		return float64(slow*(1-keep)) + float64(frequency*keep)
	}
	return frequency
}

// RotaryFactors returns by how much the scaling of Llama 3 slows each pair of a head, and nil for a model without it.
func (c Config) RotaryFactors() []float32 {
	if c.form.rotary.kind != "llama3" {
		return nil
	}
	plain := c.form.rotary
	plain.scaling = scaling{}
	factors := make([]float32, plain.dim/2)
	for i, scaled := range c.form.rotary.frequencies() {
		factors[i] = plain.frequencies()[i] / scaled
	}
	return factors
}

// ramp is how much of the frequency of pair i is scaled: 0 for pairs that turn often within the original positions, 1
// for those that turn seldom (Peng et al. 2023, definition 2).
func (r rotary) ramp(i int) float64 {
	pair := func(turns float64) float64 { // that turns so often
		ratio := float64(r.original) / float64(float64(turns*2)*math.Pi)
		return float64(float64(r.dim)*detmath.Log64(ratio)) / float64(2*detmath.Log64(r.theta))
	}
	low, high := pair(r.fast), pair(r.slow)
	if !r.whole {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(r.dim-1))
	if low == high {
		high += 0.001
	}
	return min(max((float64(i)-low)/(high-low), 0), 1)
}
