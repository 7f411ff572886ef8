package fixedpoint

import (
	"errors"
	"math"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

func of(values ...float32) []*tensor.Tensor {
	t := tensor.New(tensor.Make(tensor.Float32, len(values)))
	copy(t.F32(), values)
	return []*tensor.Tensor{t}
}

func TestMeanOfSum(t *testing.T) {
	sum := make([]uint32, 3)
	for _, u := range []struct {
		update []*tensor.Tensor
		w      float64
	}{{of(1, -2), 1}, {of(-3, 0.5), 0.5}} {
		e, err := Encode(u.update, 10, u.w)
		if err != nil {
			t.Fatal(err)
		}
		for i := range sum {
			sum[i] += e[i]
		}
	}
	mean, err := Mean(sum, 10, []tensor.Shape{tensor.Make(tensor.Float32, 2)})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{(1 - 1.5) / 1.5, (-2 + 0.25) / 1.5} {
		if got := float64(mean[0].F32()[i]); math.Abs(got-want) > 1e-5 {
			t.Errorf("element %d is %v, wanted %v", i, got, want)
		}
	}
}

// TestNormIsBounded: an update of a hundred times the norm has the norm, to the integer.
func TestNormIsBounded(t *testing.T) {
	for _, u := range [][]*tensor.Tensor{of(100, -200, 50), of(1, 0, 0), of(3e38), of(1e-3, 1e-3)} {
		e, err := Encode(u, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !norm(e[:len(e)-1]) {
			t.Errorf("%v has the norm of %v", e, u[0].F32())
		}
	}
}

func TestRefused(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		update  []*tensor.Tensor
		clip, w float64
	}{{of(nan), 1, 1}, {of(1), 0, 1}, {of(1), 1, 1.5}, {of(1), 1, -1}, {of(float32(math.Inf(1))), 1, 1}} {
		if _, err := Encode(c.update, c.clip, c.w); !errors.Is(err, ErrUpdate) {
			t.Errorf("%v: %v", c, err)
		}
	}
	for _, sum := range [][]uint32{{1}, {1, 0}, {1, 1 << 31}} {
		if _, err := Mean(sum, 1, []tensor.Shape{tensor.Make(tensor.Float32, 1)}); !errors.Is(err, ErrUpdate) {
			t.Errorf("%v: %v", sum, err)
		}
	}
}
