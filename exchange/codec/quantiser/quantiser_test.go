package quantiser

import (
	"math"
	"slices"
	"testing"
)

// statistics returns the mean and the width of one code; the width is 0 when all elements are equal or there is only
// one.
func statistics(x []float32, levels int) (mean, scale float64) {
	q := New(len(x), levels)
	for pass := range squarePass + 1 {
		q.take(pass, x)
		q.end(pass)
	}
	return q.mean, q.scale
}

// The vector is the published one of the quantiser (algorithms of the INTELLECT-1 run).
func TestPublishedVector(t *testing.T) {
	x := []float32{-1, -.5, 0, .25, .5, 1, 3, -.125}
	const levels = 256
	mean, scale := statistics(x, levels)
	if mean != 0.390625 || math.Abs(scale-0.0285094014) > 1e-9 {
		t.Fatalf("mean %v, scale %v", mean, scale)
	}
	codes := make([]byte, len(x))
	if Quantise(codes, x, levels); !slices.Equal(codes, []byte{79, 97, 114, 123, 132, 149, 220, 110}) {
		t.Fatalf("codes %v", codes)
	}
}
