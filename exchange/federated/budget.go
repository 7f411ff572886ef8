package federated

import (
	"math"

	"github.com/starling-network/starling/exchange/renyi"
)

// Spent is the use of the data of one owner by one job.
type Spent struct {
	Noise  float64 `json:"noise"`  // multiplier of the job; 0: none
	Rounds uint32  `json:"rounds"` // in which the owner sent a vector
}

// Epsilon is the epsilon at a delta of all uses together, by the accountant of Rényi differential privacy. It is
// infinite if one use is without noise. The accountant counts no amplification by sampling, because the coordinator
// sees which owners take part.
func Epsilon(delta float64, uses ...Spent) float64 {
	var loss renyi.Loss
	for _, u := range uses {
		if u.Rounds == 0 {
			continue
		}
		if u.Noise == 0 {
			return math.Inf(1)
		}
		for i, l := range renyi.Gaussian(1, u.Noise).Times(float64(u.Rounds)) {
			loss[i] += l
		}
	}
	return loss.Epsilon(delta)
}
