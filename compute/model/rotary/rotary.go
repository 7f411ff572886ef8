// Package rotary computes the angles of rotary position embeddings (Su et al. 2021), also those that are stretched
// beyond the positions of the first training.
//
// It has no graph: compute/model turns heads by these angles. Which keys describe them is compute/model/architecture.
package rotary

import (
	"math"

	"github.com/starling-network/starling/compute/detmath"
)

// Scaling stretches rotary positions beyond those that a model was first trained on. Its zero value changes nothing.
type Scaling struct {
	Kind     string  // a value of rope_type; "" changes nothing
	Factor   float64 // the model has this number of times as many positions
	Original int     // positions before
	Low      float64 // llama3: turns within the original positions below which a pair is slowed by the whole factor
	High     float64 // llama3: and above which it is not
	Fast     float64 // yarn: as high
	Slow     float64 // yarn: as low
	Whole    bool    // yarn: the pairs where slowing begins and ends are not rounded
	Length   float64 // yarn: factor of the rotated vectors
}

// Rotary is what the positions of a layer are turned by.
type Rotary struct {
	Theta float64
	Dim   int // elements of a head that are turned, an even number; the others stay
	Scaling
}

// Stretch is by how much attention is sharpened for the factor of the positions (Peng et al. 2023, equation 22).
func (s Scaling) Stretch(by float64) float64 {
	if s.Factor <= 1 {
		return 1
	}
	return 1 + float64(float64(0.1*by)*detmath.Log64(s.Factor))
}

// Magnitude is the factor of rotated vectors.
func (r Rotary) Magnitude() float32 {
	if r.Length == 0 {
		return 1
	}
	return float32(r.Length)
}

// Frequencies returns the angle by which each pair of a head turns from one position to the next.
func (r Rotary) Frequencies() []float32 {
	frequencies := make([]float32, r.Dim/2)
	for i := range frequencies {
		exponent := float64(-2*i) / float64(r.Dim)
		frequency := detmath.Exp64(float64(exponent * detmath.Log64(r.Theta)))
		frequencies[i] = float32(r.scaled(frequency, i))
	}
	return frequencies
}

// scaled is the frequency of pair i after scaling.
func (r Rotary) scaled(frequency float64, i int) float64 {
	slow := frequency / r.Factor
	switch r.Kind {
	case "linear":
		return slow
	case "llama3":
		turns := float64(float64(r.Original)*frequency) / float64(2*math.Pi)
		keep := min(max((turns-r.Low)/(r.High-r.Low), 0), 1)
		return float64((1-keep)*slow) + float64(keep*frequency)
	case "yarn":
		keep := 1 - r.ramp(i)
		return float64(slow*(1-keep)) + float64(frequency*keep)
	}
	return frequency
}

// ramp is how much of the frequency of pair i is scaled: 0 for pairs that turn often within the original positions, 1
// for those that turn seldom (Peng et al. 2023, definition 2).
func (r Rotary) ramp(i int) float64 {
	pair := func(turns float64) float64 { // that turns so often
		ratio := float64(r.Original) / float64(float64(turns*2)*math.Pi)
		return float64(float64(r.Dim)*detmath.Log64(ratio)) / float64(2*detmath.Log64(r.Theta))
	}
	low, high := pair(r.Fast), pair(r.Slow)
	if !r.Whole {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(r.Dim-1))
	if low == high {
		high += 0.001
	}
	return min(max((float64(i)-low)/(high-low), 0), 1)
}
