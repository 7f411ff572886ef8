package matmul

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
	"github.com/starling-network/starling/compute/philox"
)

// naive computes g as its documentation says.
func naive(g *Gemm) {
	for i := range g.M {
		for j := range g.N {
			total := float32(0)
			if g.Add {
				total = g.C[i*g.CRow+j]
			}
			for k0 := 0; k0 < g.K; k0 += ChunkK {
				sum := float32(0)
				for k := k0; k < min(k0+ChunkK, g.K); k++ {
					sum = FMA32(g.A[i*g.ARow+k*g.ACol], g.B[k*g.BRow+j*g.BCol], sum)
				}
				if k0 == 0 && !g.Add {
					total = sum
				} else {
					total += sum
				}
			}
			g.C[i*g.CRow+j] = total
		}
	}
}

// randomGemm makes a product of the given size with random layouts.
func randomGemm(r *rand.Rand, m, n, k int, value func(kerneltest.Random) float32) *Gemm {
	layout := func(rows, cols int) (data []float32, row, col int) {
		row, col = 1, 1
		switch r.IntN(4) {
		case 0: // rows of more elements than used
			row = cols + r.IntN(9)
		case 1: // transposed
			col = rows + r.IntN(9)
		case 2: // neither is dense
			col = 1 + r.IntN(3)
			row = cols*col + r.IntN(3)
		case 3:
			row = cols
			if r.IntN(8) == 0 {
				row = 0
			}
		}
		data = make([]float32, max(1, (rows-1)*row+(cols-1)*col+1))
		for i := range data {
			data[i] = value(r)
		}
		return data, row, col
	}
	g := &Gemm{M: m, N: n, K: k, CRow: n + r.IntN(5), Add: r.IntN(3) == 0}
	g.A, g.ARow, g.ACol = layout(m, k)
	g.B, g.BRow, g.BCol = layout(k, n)
	g.C = make([]float32, max(0, (m-1)*g.CRow+n))
	return g
}

// requireSame fails unless run gives every element of C the bits of naive, and leaves the gaps between rows alone.
func requireSame(t *testing.T, g *Gemm, what string, run func(g *Gemm)) {
	t.Helper()
	want := *g
	want.C = make([]float32, len(g.C))
	got := want
	got.C = make([]float32, len(g.C))
	for i := range got.C {
		want.C[i], got.C[i] = 42, 42
	}
	naive(&want)
	run(&got)
	for i := range want.C {
		if !kerneltest.Same(got.C[i], want.C[i]) {
			t.Fatalf("%s, %d x %d x %d (A %d %d, B %d %d, C %d): element %d is %x, want %x",
				what, g.M, g.K, g.N, g.ARow, g.ACol, g.BRow, g.BCol, g.CRow, i, got.C[i], want.C[i])
		}
	}
}

func TestGemmBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	sizes := []int{1, 2, 3, 5, 6, 7, 12, 15, 16, 17, 31, 32, 33, 64, 97, 100}
	depths := []int{0, 1, 2, 7, 8, 9, 16, 63, 64, 100, 511, 512, 513, 1024, 1100, 1537}
	for name, value := range kerneltest.Values {
		for range 60 {
			m, n, k := sizes[r.IntN(len(sizes))], sizes[r.IntN(len(sizes))], depths[r.IntN(len(depths))]
			for m*n*k > 300000 {
				k /= 3
			}
			g := randomGemm(r, m, n, k, value)
			for _, p := range kernel.Paths() {
				for _, threads := range []int{1, 2, 3, 7} {
					requireSame(t, g, fmt.Sprintf("%s, %s, %d threads", name, p, threads), func(g *Gemm) {
						g.Path = p
						g.Run(threads)
					})
				}
			}
		}
	}
}

// TestGemmBlocks reaches the edges of the blocks of packed rows and columns.
func TestGemmBlocks(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, p := range kernel.Paths()[1:] {
		rows, cols := tilings[p].blockRows, tilings[p].blockCols
		for _, s := range [][3]int{{rows + 1, 5, 3}, {2*rows + 5, 300, 4}, {3, cols + 1, 5}, {97, 2*cols + 17, 2},
			{2, 33, 2*ChunkK + 1}, {300, 3, 700}, {1, 1, 5000}} {
			for range 8 {
				g := randomGemm(r, s[0], s[1], s[2], kerneltest.Values["few bits"])
				requireSame(t, g, p.String(), func(g *Gemm) {
					g.Path = p
					g.Run(3)
				})
			}
		}
	}
}

func TestBatchGemm(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, batch := range []int{0, 1, 2, 5, 9} {
		for _, threads := range []int{1, 2, 3, 7} {
			for _, p := range kernel.Paths() {
				const m, n, k = 20, 34, 40
				g := Gemm{M: m, N: n, K: k, ARow: k, ACol: 1, BRow: 1, BCol: k, CRow: n, Path: p}
				g.A, g.B = make([]float32, 9*m*k), make([]float32, n*k)
				g.C = make([]float32, batch*m*n)
				for i := range g.A {
					g.A[i] = kerneltest.Values["normal"](r)
				}
				for i := range g.B {
					g.B[i] = kerneltest.Values["normal"](r)
				}
				BatchGemm(g, batch, m*k, 0, m*n, threads)
				for b := range batch {
					want := g
					want.A, want.C = g.A[b*m*k:], make([]float32, m*n)
					naive(&want)
					for i, x := range want.C {
						if got := g.C[b*m*n+i]; !kerneltest.Same(got, x) {
							t.Fatalf("product %d of %d, %d threads, %s: element %d is %x, want %x", b, batch, threads, p, i, got, x)
						}
					}
				}
			}
		}
	}
}

// TestGemmContraction fails for a kernel that rounds products, and for one that adds chunk sums otherwise than
// specified.
func TestGemmContraction(t *testing.T) {
	x := float32(1 + 0x1p-12)
	g := &Gemm{M: 1, N: 16, K: 2, A: []float32{-1, x}, ARow: 2, ACol: 1, BCol: 0, BRow: 1, B: []float32{1 + 0x1p-11, x},
		C: make([]float32, 16), CRow: 16}
	long := &Gemm{M: 1, N: 16, K: 3 * ChunkK, A: make([]float32, 3*ChunkK), ACol: 1, B: []float32{1},
		C: make([]float32, 16), CRow: 16}
	// Chunk sums 2^24, 1 and 1: added one by one to 2^24 the ones are lost, in one running sum or added first they are
	// not.
	long.A[0], long.A[ChunkK], long.A[2*ChunkK] = 0x1p24, 1, 1
	for _, p := range kernel.Paths() {
		g.Path, long.Path = p, p
		g.Run(1)
		long.Run(1)
		for j := range 16 {
			if g.C[j] != 0x1p-24 {
				t.Errorf("%s: the product in x*x - (1 + 2^-11) is rounded: %x", p, g.C[j])
			}
			if long.C[j] != 0x1p24 {
				t.Errorf("%s: chunk sums are not added in ascending order: %x", p, long.C[j])
			}
		}
	}
}

func TestGemmPanics(t *testing.T) {
	ok := Gemm{M: 2, N: 3, K: 4, A: make([]float32, 8), ARow: 4, ACol: 1, B: make([]float32, 12), BRow: 3, BCol: 1,
		C: make([]float32, 6), CRow: 3}
	for name, spoil := range map[string]func(g *Gemm){
		"short A": func(g *Gemm) { g.A = g.A[1:] }, "short B": func(g *Gemm) { g.BCol = 2 },
		"short C": func(g *Gemm) { g.CRow = 4 },
		"overlap": func(g *Gemm) { g.CRow = 2 }, "negative stride": func(g *Gemm) { g.ARow = -1 },
		"negative size": func(g *Gemm) { g.M = -1 },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			g := ok
			spoil(&g)
			g.Run(1)
		}()
	}
	ok.Run(1)
}

func TestGrid(t *testing.T) {
	for _, c := range [][5]int{{10, 10, 1, 1, 1}, {10, 1, 4, 4, 1}, {1, 10, 4, 1, 4}, {100, 40, 4, 2, 2},
		{3, 2, 100, 3, 2}, {40, 1000, 3, 1, 3}} {
		if r, k := tilings[kernel.AVX2].grid(c[0], c[1], c[2]); r != c[3] || k != c[4] {
			t.Errorf("grid(%d, %d, %d) = %d, %d, want %d, %d", c[0], c[1], c[2], r, k, c[3], c[4])
		}
	}
}

func BenchmarkGemm(b *testing.B) {
	run := func(name string, m, n, k, batch int, ta, tb bool, path kernel.Path) {
		g := Gemm{M: m, N: n, K: k, ARow: k, ACol: 1, BRow: n, BCol: 1, CRow: n, Path: path}
		if ta {
			g.ARow, g.ACol = 1, m
		}
		if tb {
			g.BRow, g.BCol = 1, k
		}
		g.A, g.B, g.C = make([]float32, batch*m*k), make([]float32, batch*k*n), make([]float32, batch*m*n)
		philox.NormalTo(g.A, 1, 1)
		philox.NormalTo(g.B, 1, 2)
		b.Run(fmt.Sprintf("%s/%s/%dx%dx%dx%d", path, name, batch, m, k, n), func(b *testing.B) {
			for b.Loop() {
				BatchGemm(g, batch, m*k, k*n, m*n, 1)
			}
			b.ReportMetric(2*float64(batch)*float64(m)*float64(n)*float64(k)*float64(b.N)/float64(b.Elapsed().Nanoseconds()),
				"GF/s")
		})
	}
	for _, n := range []int{256, 512, 1024, 2048} {
		run("NN", n, n, n, 1, false, false, kernel.Best())
	}
	run("NN", 2048, 1536, 384, 1, false, false, kernel.Best())
	run("NN", 2048, 384, 1536, 1, false, false, kernel.Best())
	run("NT", 2048, 384, 1536, 1, false, true, kernel.Best())
	run("TN", 384, 1536, 2048, 1, true, false, kernel.Best())
	run("NT", 256, 256, 64, 48, false, true, kernel.Best())
	run("NN", 256, 64, 256, 48, false, false, kernel.Best())
	run("TN", 256, 64, 256, 48, true, false, kernel.Best())
	run("NT", 1, 1536, 384, 1, false, true, kernel.Best())
	run("NN", 1, 1, 1, 1<<16, false, false, kernel.Best())
	run("NN", 2, 2, 2, 1<<16, false, false, kernel.Best())
	run("NN", 1536, 1, 384, 1, false, false, kernel.Best())
	run("NN", 64, 64, 64, 1, false, false, kernel.Portable)
	run("NN", 128, 128, 512, 1, false, false, kernel.Portable)
}
