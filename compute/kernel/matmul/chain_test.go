package matmul

import (
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/philox"
)

func TestChainInPartsIsGemm(t *testing.T) {
	const n = 2*ChunkK + 100
	a, b := make([]float32, n), make([]float32, 3*n)
	philox.NormalTo(a, 1, 1)
	philox.NormalTo(b, 1, 2)
	var want [1]float32
	g := Gemm{M: 1, N: 1, K: n, A: a, ARow: n, ACol: 1, B: b, BRow: 3, BCol: 1, C: want[:], CRow: 1, Path: kernel.Portable}
	g.Run(1)
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
