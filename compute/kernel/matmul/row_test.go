package matmul

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
)

// TestRowBits holds products of one row, and of one column, to the definition: every layout, columns and elements that
// do not fill a vector, several blocks and chunks.
func TestRowBits(t *testing.T) {
	for _, path := range kernel.Paths() {
		for kind, value := range kerneltest.Values {
			r := rand.New(rand.NewPCG(1, 2))
			for _, n := range []int{1, 15, 16, 17, 48, 63, rowBlock + 37} {
				for _, k := range []int{1, 3, 4, 31, 64, ChunkK, ChunkK + 6} {
					if n > 100 && k > 100 && kind != "normal" {
						continue // the definition is slow
					}
					for _, size := range [][2]int{{1, n}, {n, 1}} {
						g := randomGemm(r, size[0], size[1], k, value)
						g.Path = path
						requireSame(t, g, fmt.Sprintf("%s %s", path, kind), func(g *Gemm) { g.Run(1 + n%2) })
					}
				}
			}
		}
	}
}

func BenchmarkRow(b *testing.B) {
	const n, k = 2048, 2048 // beyond the caches
	a, w, c := make([]float32, k), make([]float32, n*k), make([]float32, n)
	for name, strides := range map[string][2]int{"rows": {n, 1}, "columns": {1, k}} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/%d", name, threads), func(b *testing.B) {
				b.SetBytes(4 * n * k)
				g := Gemm{M: 1, N: n, K: k, A: a, ARow: k, ACol: 1, B: w, BRow: strides[0], BCol: strides[1], C: c, CRow: n}
				for range b.N {
					g.Run(threads)
				}
			})
		}
	}
}
