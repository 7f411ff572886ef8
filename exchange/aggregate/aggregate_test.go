package aggregate

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
)

func vectors(rows ...[]float32) []*tensor.Tensor {
	var out []*tensor.Tensor
	for _, r := range rows {
		out = append(out, tensor.FromF32(r, len(r)))
	}
	return out
}

func TestCombine(t *testing.T) {
	us := vectors([]float32{1, -1}, []float32{2, 5}, []float32{3, 0}, []float32{100, -50})
	for _, c := range []struct {
		rule string
		trim float64
		want []float32
	}{
		{Mean, 0, []float32{26.5, -11.5}},
		{TrimmedMean, 0.25, []float32{2.5, -0.5}},
		{TrimmedMean, 0.2, []float32{26.5, -11.5}}, // a fifth of four is none
		{TrimmedMean, 0.5, []float32{2.5, -0.5}},   // never all of them
	} {
		got, err := Combine(c.rule, c.trim, us)
		if err != nil || !slices.Equal(got.F32(), c.want) {
			t.Errorf("%s %v: %v, %v, want %v", c.rule, c.trim, got.F32(), err, c.want)
		}
	}
}

func TestOneUpdateIsItself(t *testing.T) {
	x := []float32{0.1, -3e-40, 7e30}
	got, err := Combine(Mean, 0, vectors(x))
	if err != nil || !slices.Equal(got.F32(), x) {
		t.Fatalf("%v, %v", got, err)
	}
}

func TestRefused(t *testing.T) {
	if _, err := Combine(Mean, 0, nil); !errors.Is(err, ErrUpdates) {
		t.Error("no updates were combined")
	}
	if _, err := Combine(Mean, 0, vectors([]float32{1}, []float32{1, 2})); !errors.Is(err, ErrUpdates) {
		t.Error("different shapes were combined")
	}
}
