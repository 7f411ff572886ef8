package federated

import (
	"math"

	"github.com/starling-network/starling/exchange/renyi"
)

// Unit is what epsilon protects the presence of.
type Unit string

// All data of an owner, or one of its examples.
const (
	OfOwner   Unit = "owner"
	OfExample Unit = "example"
)

// Spent is the use of the data of one owner by one job.
type Spent struct {
	Noise  float64 `json:"noise"`  // multiplier of the job; 0: none
	Rounds uint32  `json:"rounds"` // in which the owner sent a vector

	ExampleNoise float64 `json:"example_noise,omitempty"` // multiplier of the noise in each step; 0: none
	Rate         float64 `json:"rate,omitempty"`          // with which an example is in a step
	Steps        uint32  `json:"steps,omitempty"`         // of a round
}

// loss is what the use discloses of a unit; bounded is false if there is no noise for it. Of owners the accountant
// counts no amplification by sampling, because the coordinator sees which take part. The examples of a step are known
// to their owner alone.
func (s Spent) loss(of Unit) (l renyi.Loss, bounded bool) {
	switch {
	case of == OfExample && s.ExampleNoise > 0:
		return renyi.Gaussian(s.Rate, s.ExampleNoise).Times(float64(s.Rounds) * float64(s.Steps)), true
	case of == OfExample && s.Noise > 0: // one example moves a clipped update by up to twice the clipping norm
		return renyi.Gaussian(1, s.Noise/2).Times(float64(s.Rounds)), true
	case of == OfOwner && s.Noise > 0:
		return renyi.Gaussian(1, s.Noise).Times(float64(s.Rounds)), true
	}
	return l, false
}

// Epsilon is the epsilon of a unit at a delta of all uses together, by the accountant of Rényi differential privacy. It
// is infinite if one use is without noise for it.
func Epsilon(of Unit, delta float64, uses ...Spent) float64 {
	var all renyi.Loss
	for _, u := range uses {
		if u.Rounds == 0 {
			continue
		}
		loss, bounded := u.loss(of)
		if !bounded {
			return math.Inf(1)
		}
		for i, l := range loss {
			all[i] += l
		}
	}
	return all.Epsilon(delta)
}
