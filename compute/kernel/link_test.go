package kernel

import (
	"math"
	"testing"

	"github.com/starling-network/starling/compute/philox"
)

func TestSumInPartsIsSum(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 4095, 4096, 4097, 8192, 70001, 4096*4096 + 4096*3 + 5} {
		x := make([]float32, n)
		philox.NormalTo(x[:min(n, 1<<18)], 7, uint64(n))
		for i := 1 << 18; i < n; i++ {
			x[i] = x[i-1<<18] * 1.25
		}
		state := make([]float32, SumState(n))
		for i, v := range x {
			SumPart(state, i, v)
		}
		if got, want := SumEnd(state, n), Portable.Sum(x); math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%d elements: %x, Sum is %x", n, got, want)
		}
	}
	for _, x := range [][]float32{{float32(math.Copysign(0, -1))}, {float32(math.Inf(1)), 1}, {1e38, 1e38, 3e38}} {
		state := make([]float32, SumState(len(x)))
		for i, v := range x {
			SumPart(state, i, v)
		}
		if got, want := SumEnd(state, len(x)), Portable.Sum(x); math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%v: %x, Sum is %x", x, got, want)
		}
	}
}
