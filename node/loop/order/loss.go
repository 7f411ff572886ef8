package order

import (
	"math"

	"github.com/starling-network/starling/compute/model/tokenloss"
	"github.com/starling-network/starling/web/tinker"
)

// Loss is the loss of a target with a log-probability.
func Loss(f tokenloss.Function, d tinker.Datum, k int, log float64) float64 {
	weight := float64(d.Weights[k])
	if !f.Sampled() {
		return -weight * log
	}
	a := float64(d.Advantages[k])
	if a == 0 || weight == 0 {
		return 0
	}
	ratio := math.Exp(log - float64(d.Sampled[k]))
	if f.Kind == tokenloss.Proximal {
		return -weight * min(a*ratio, a*min(max(ratio, f.Low), f.High))
	}
	return -weight * a * ratio
}
