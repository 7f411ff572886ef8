package strategies

import (
	"math"
	"slices"

	"github.com/starling-network/starling/node/benchmark"
)

// Sample is the losses of training runs that differ only in their seeds.
type Sample struct {
	Loss   []float64 `json:"loss"`   // nats a token; +Inf: the model diverged
	Mean   float64   `json:"mean"`   // of them
	Spread float64   `json:"spread"` // their standard deviation
	Gap    float64   `json:"gap"`    // of the mean, relative to its reference: 0.01 is 1 %
}

// sample of losses, held against a mean; 0: against none.
func sample(losses []float64, base float64) Sample {
	s := Sample{Loss: losses}
	n := float64(len(losses))
	for _, x := range losses {
		s.Mean += x / n
	}
	for _, x := range losses {
		s.Spread += (x - s.Mean) * (x - s.Mean) / max(1, n-1)
	}
	if base > 0 {
		s.Gap = benchmark.Rounded(s.Mean/base-1, 5)
	}
	s.Mean, s.Spread = benchmark.Rounded(s.Mean, 5), benchmark.Rounded(math.Sqrt(s.Spread), 5)
	return s
}

// diverged says that the model did with one of the seeds.
func (s Sample) diverged() bool {
	return slices.ContainsFunc(s.Loss, func(x float64) bool { return math.IsInf(x, 1) })
}
