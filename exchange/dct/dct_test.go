package dct

import (
	"math"
	"testing"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

func TestBlocksOfTheTransform(t *testing.T) {
	for _, c := range [][3]int{{12, 5, 4}, {100, 26, 25}, {1_000_000_007, 4096, 1}, {64, 64, 64}, {3, 64, 3}} {
		if got := divisor(c[0], c[1]); got != c[2] {
			t.Errorf("largest divisor of %d up to %d: %d, want %d", c[0], c[1], got, c[2])
		}
	}
	g := GridOf(tensor.Make(tensor.Float32, 3, 32, 100), 64, 9600)
	if g != (Grid{Rows: 96, Cols: 100, R: 48, C: 50}) {
		t.Errorf("%+v", g)
	}
}

// The orthonormal DCT-II of the unit vectors, and there and back.
func TestTransform(t *testing.T) {
	want := []float32{.5, .6533, .5, .2706, .5, .2706, -.5, -.6533, .5, -.2706, -.5, .6533, .5, -.6533, .5, -.2706}
	for i := range 4 {
		unit := make([]float32, 4)
		unit[i] = 1
		for k, v := range (Grid{Rows: 1, Cols: 4, R: 1, C: 4}).Transform(unit) {
			if math.Abs(float64(v-want[4*i+k])) > 1e-4 {
				t.Errorf("unit %d, frequency %d: %v, want %v", i, k, v, want[4*i+k])
			}
		}
	}
	for _, dims := range [][]int{{64, 64}, {128, 192}, {100, 26}, {50}, {29, 3, 8}} {
		x := tensor.New(tensor.Make(tensor.Float32, dims...))
		philox.NormalTo(x.F32(), 9, 0)
		g := GridOf(x.Shape, 64, x.Shape.Elements())
		y := g.Transform(x.F32())
		var before, after float64
		for i, v := range x.F32() {
			before += float64(v) * float64(v)
			after += float64(y[i]) * float64(y[i])
		}
		if math.Abs(after/before-1) > 1e-5 {
			t.Errorf("%v: energy %v became %v", dims, before, after)
		}
		z := make([]float32, len(y))
		g.Inverse(z, y)
		var off float64
		for i, v := range x.F32() {
			off += float64(v-z[i]) * float64(v-z[i])
		}
		if off > 1e-12*before {
			t.Errorf("%v: error %v", dims, off/before)
		}
	}
}
