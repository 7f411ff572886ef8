package transform

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
)

// A part of a transform follows, to the bit, from the range of the tensor that Reach gives, which is not much more
// than the part; the transform keeps the norm, and its inverse restores the tensor.
func TestTransformInPieces(t *testing.T) {
	for _, dims := range [][]int{{1}, {63}, {64, 64}, {257, 65}, {203, 768}, {96, 3072}, {3, 70_001}, {130_001},
		{16, 11_008}, {4, 4, 33}, {5, 65_536}} {
		x := tensor.New(tensor.Make(tensor.Float32, dims...))
		philox.NormalTo(x.F32(), 5, uint64(len(dims)))
		y := Apply(CosineTransform, x)
		n := x.Shape.Elements()
		for lo := 0; lo < n; lo += codec.PartElements {
			hi := min(lo+codec.PartElements, n)
			from, to := Reach(CosineTransform, x.Shape, lo, hi)
			if from > lo || to < hi || to > n || to-from >= 3*codec.PartElements {
				t.Fatalf("%v: elements %d to %d are made of %d to %d", dims, lo, hi, from, to)
			}
			if got := Piece(CosineTransform, x.Shape, x.F32()[from:to])[lo-from : hi-from]; !slices.Equal(got, y.F32()[lo:hi]) {
				t.Errorf("%v: elements %d to %d are others than in the whole", dims, lo, hi)
			}
		}
		var before, after, worst float64
		for i, v := range Inverse(CosineTransform, y).F32() {
			before += float64(x.F32()[i]) * float64(x.F32()[i])
			after += float64(y.F32()[i]) * float64(y.F32()[i])
			worst = max(worst, math.Abs(float64(v-x.F32()[i])))
		}
		if math.Abs(after/before-1) > 1e-5 || worst > 1e-5 {
			t.Errorf("%v: the norm is %v times that before, and an element comes back %v away", dims, math.Sqrt(after/before),
				worst)
		}
		if Apply(Plain, x) != x || Inverse(Plain, x) != x {
			t.Errorf("%v: no transform changes something", dims)
		}
	}
	square := tensor.New(tensor.Make(tensor.Float32, 64, 64))
	philox.NormalTo(square.F32(), 6, 0)
	payload, err := codec.Compress(codec.DCT{Side: 64, K: 4096, Bits: 32}, square) // as it is
	if err != nil {
		t.Fatal(err)
	}
	if want, err := (codec.DCT{Side: 64, K: 4096, Bits: 32}).Frequencies(payload, square.Shape); err != nil ||
		!slices.Equal(want, Apply(CosineTransform, square).F32()) {
		t.Errorf("a block has other frequencies than by the codec: %v", err)
	}
	if Check(CosineTransform) != nil || Check(Plain) != nil || Check("fft") == nil {
		t.Error("dct and none are the transforms")
	}
}
