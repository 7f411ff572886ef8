package benchmark

import (
	"math"
	"slices"

	"github.com/starling-network/starling/compute/tensor"
)

// attacks of the literature on the updates of a round, of which the last ones are made by hostile workers who know the others.
// Label flipping is done where the data are.
var attacks = []struct {
	name string
	make func(mean, deviation float64, first float32) float32 // an element, of that of the honest updates
}{
	{"sign flip x 10", func(mean, _ float64, _ float32) float32 { return float32(-10 * mean) }},
	{"inner product x 1.5", func(mean, _ float64, _ float32) float32 { return float32(-1.5 * mean) }},
	{"a little is enough", func(mean, deviation float64, _ float32) float32 { return float32(mean - 1.5*deviation) }},
	{"mimic", func(_, _ float64, first float32) float32 { return first }},
}

// hostile replaces the last updates of a round.
func hostile(n int, element func(mean, deviation float64, first float32) float32) func([][]*tensor.Tensor) [][]*tensor.Tensor {
	return func(deltas [][]*tensor.Tensor) [][]*tensor.Tensor {
		honest := deltas[:len(deltas)-n]
		lie := make([]*tensor.Tensor, len(honest[0]))
		for i, t := range honest[0] {
			lie[i] = tensor.New(t.Shape)
			y := lie[i].F32()
			for k := range y {
				var mean, square float64
				for _, d := range honest {
					mean += float64(d[i].F32()[k]) / float64(len(honest))
				}
				for _, d := range honest {
					away := float64(d[i].F32()[k]) - mean
					square += away * away / float64(len(honest))
				}
				y[k] = element(mean, math.Sqrt(square), t.F32()[k])
			}
		}
		return slices.Concat(honest, slices.Repeat([][]*tensor.Tensor{lie}, n))
	}
}
