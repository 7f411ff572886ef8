package outer

import (
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// A problem is a quadratic in four layers, of curvatures from 0.1 to 1, whose gradients every worker sees with noise.
const layers, width = 4, 16

var targets = func() (x [layers][width * width]float32) {
	for l := range x {
		philox.NormalTo(x[l][:], 99, uint64(l))
	}
	return x
}()

func curvature(i int) float32 { return 0.1 + 0.9*float32(i%8)/7 }

// gradient adds noise that is uniform within half of its size on both sides.
func gradient(x []float32, layer int, stream uint64, noise float32) *tensor.Tensor {
	g := tensor.New(tensor.Make(tensor.Float32, width, width))
	var words [width * width]uint32
	philox.BlocksTo(words[:], 5, stream, 0)
	for i, v := range x {
		g.F32()[i] = float32(curvature(i)*(v-targets[layer][i])) + float32(noise*(float32(words[i])*0x1p-32-0.5))
	}
	return g
}

func loss(model []*tensor.Tensor) (sum float64) {
	for l, p := range model {
		for i, v := range p.F32() {
			d := float64(v - targets[l][i])
			sum += float64(curvature(i)) * d * d / 2 / (layers * width * width)
		}
	}
	return sum
}

func zeros() []*tensor.Tensor {
	var m []*tensor.Tensor
	for range layers {
		m = append(m, tensor.New(tensor.Make(tensor.Float32, width, width)))
	}
	return m
}

func clone(x []*tensor.Tensor) []*tensor.Tensor {
	var y []*tensor.Tensor
	for _, t := range x {
		y = append(y, t.Clone())
	}
	return y
}
