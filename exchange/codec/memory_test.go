package codec

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

// The sent values and the residual add up to the computed ones; whole numbers make the sums exact.
func TestFeedbackLosesNothing(t *testing.T) {
	for _, c := range []Codec{TopK{Chunk: 64, K: 3, Bits: 32}, RandomK{Every: 9, Bits: 32}, named[E3M0]} {
		f := Feedback{Codec: c, Decay: 1}
		var residual *tensor.Tensor
		computed, sent := make([]float64, 640), make([]float64, 640)
		for round := range uint64(10) {
			delta := normal(round, 10, 64)
			for i, v := range delta.F32() {
				delta.F32()[i] = float32(math.Round(float64(v * 100)))
				computed[i] += float64(delta.F32()[i])
			}
			p, next, err := f.Encode(residual, delta)
			if err != nil {
				t.Fatal(err)
			}
			y, err := Restore(c, p, delta.Shape)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range y.F32() {
				sent[i] += float64(v)
			}
			residual = next
		}
		for i, r := range residual.F32() {
			if math.Abs(sent[i]+float64(r)-computed[i]) > 1e-3 {
				t.Fatalf("%#v: element %d: sent %v, kept %v of %v", c, i, sent[i], r, computed[i])
			}
		}
	}
}

// Without feedback a small element among large ones is never sent; with it, it arrives.
func TestFeedbackSendsSmallElements(t *testing.T) {
	c := TopK{Chunk: 64, K: 4, Bits: 32}
	delta := vector(slices.Repeat([]float32{0.1}, 64)...)
	for i := range 4 {
		delta.F32()[i] = 1
	}
	total := func(decay float32) (sum float64) {
		var residual *tensor.Tensor
		for range 200 {
			p, next, err := Feedback{Codec: c, Decay: decay}.Encode(residual, delta)
			if err != nil {
				t.Fatal(err)
			}
			y, err := Restore(c, p, delta.Shape)
			if err != nil {
				t.Fatal(err)
			}
			sum, residual = sum+float64(y.F32()[63]), next
		}
		return sum
	}
	if without, with := total(0), total(1); without != 0 || math.Abs(with-20) > 2 {
		t.Errorf("of 20, %v arrived without feedback and %v with it", without, with)
	}
}

func TestFeedbackDecaysAndStartsAgain(t *testing.T) {
	f := Feedback{Codec: TopK{Chunk: 64, K: 1, Bits: 32}, Decay: 0.5}
	delta := tensor.New(tensor.Make(tensor.Float32, 64))
	delta.F32()[3], delta.F32()[5] = 8, 4
	_, residual, err := f.Encode(nil, delta)
	if err != nil || residual.F32()[3] != 0 || residual.F32()[5] != 4 {
		t.Fatalf("%v, %v", residual.F32()[:8], err)
	}
	root := residual.Root()
	_, next, err := f.Encode(residual, delta) // 8 and 4 + 0.5*4
	if err != nil || next.F32()[5] != 6 || residual.Root() != root {
		t.Fatalf("%v, %v", next.F32()[:8], err)
	}
	// A residual of another layout is an error, not a guess.
	if _, _, err := f.Encode(residual, normal(1, 8, 8)); err == nil {
		t.Error("a residual of another shape was used")
	}
}
