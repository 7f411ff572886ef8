package strategies

import (
	"math"
	"slices"

	"github.com/starling-network/starling/compute/tensor"
)

// attack is how hostile workers, which know the updates of the others, form their own.
type attack struct {
	name    string
	element func(mean, deviation float64, first float32) float32 // of their update, from those of the honest workers
}

// attacks of the literature. Label flipping is done where the data are.
var attacks = []attack{
	{"sign flip x 10", func(mean, _ float64, _ float32) float32 { return float32(-10 * mean) }},
	{"inner product x 1.5", func(mean, _ float64, _ float32) float32 { return float32(-1.5 * mean) }},
	{"a little is enough", func(mean, deviation float64, _ float32) float32 { return float32(mean - 1.5*deviation) }},
	{"mimic", func(_, _ float64, first float32) float32 { return first }},
}

// on replaces the last updates of a round.
func (a attack) on(deltas [][]*tensor.Tensor) [][]*tensor.Tensor {
	honest := deltas[:len(deltas)-attackers]
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
			y[k] = a.element(mean, math.Sqrt(square), t.F32()[k])
		}
	}
	return slices.Concat(honest, slices.Repeat([][]*tensor.Tensor{lie}, attackers))
}
