package kernel

import (
	"math"
	"testing"
)

func TestSumInPartsIsSum(t *testing.T) {
	for _, n := range []int{1, 2, 15, 16, 17, 4095, 4096, 4097, 8192, 70001, 4096*4096 + 4096*3 + 5} {
		x := make([]float32, n)
		NormalTo(x[:min(n, 1<<18)], 7, uint64(n))
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

func TestChainInPartsIsGemm(t *testing.T) {
	const n = 2*ChunkK + 100
	a, b := make([]float32, n), make([]float32, 3*n)
	NormalTo(a, 1, 1)
	NormalTo(b, 1, 2)
	var want [1]float32
	(&Gemm{M: 1, N: 1, K: n, A: a, ARow: n, ACol: 1, B: b, BRow: 3, BCol: 1, C: want[:], CRow: 1, Path: Portable}).Run(1)
	var total float32
	for from := 0; from < n; from += ChunkK {
		end, c := min(from+ChunkK, n), float32(0)
		for at := from; at < end; at += 37 {
			c = Chain(c, a[at:], 1, b[3*at:], 3, min(37, end-at))
		}
		if from == 0 {
			total = c
		} else {
			total += c
		}
	}
	if total != want[0] {
		t.Errorf("%x, Gemm is %x", total, want[0])
	}
}
