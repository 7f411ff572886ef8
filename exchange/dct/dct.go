// Package dct is the orthonormal discrete cosine transform (DCT-II) of the blocks of a matrix along both axes, to the
// last bit the same on every machine. It chooses no frequencies: codec keeps the largest, transform takes all.
package dct

import (
	"math"
	"sync"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/tensor"
)

// MaxSide is the longest side of a block.
const MaxSide = 256

// Grid is a matrix in blocks: Rows x Cols elements, blocks of R x C.
type Grid struct{ Rows, Cols, R, C int }

// GridOf cuts a tensor into blocks of up to side x side, of which a row has at most so many elements.
func GridOf(s tensor.Shape, side, row int) Grid {
	g := Grid{Rows: 1, Cols: 1}
	if n := s.Rank(); n > 0 {
		g.Cols = s.Dims[n-1]
		g.Rows = s.Elements() / g.Cols
	}
	g.R, g.C = divisor(g.Rows, min(side, max(1, row/g.Cols))), divisor(g.Cols, side)
	return g
}

// divisor returns the largest divisor of n up to limit.
func divisor(n, limit int) int {
	d := min(n, limit)
	for n%d != 0 {
		d--
	}
	return d
}

// Transform returns R x C' for every block x, with the cosines R and C of the block's sides.
func (g Grid) Transform(x []float32) []float32 {
	rows, cols := tables[g.R](), tables[g.C]()
	y := make([]float32, len(x))
	stripe := make([]float32, g.R*g.Cols)
	for at := 0; at < len(x); at += len(stripe) {
		along := matmul.Gemm{
			M: g.R, N: g.Cols, K: g.R, A: rows, ARow: g.R, ACol: 1,
			B: x[at : at+len(stripe)], BRow: g.Cols, BCol: 1, C: stripe, CRow: g.Cols,
		}
		along.Run(1)
		matmul.BatchGemm(matmul.Gemm{
			M: g.R, N: g.C, K: g.C, A: stripe, ARow: g.Cols, ACol: 1,
			B: cols, BRow: 1, BCol: g.C, C: y[at : at+len(stripe)], CRow: g.C,
		}, g.Cols/g.C, g.C, 0, g.R*g.C, 1)
	}
	return y
}

// Inverse writes R' y C for every block y to its place in x.
func (g Grid) Inverse(x, y []float32) {
	rows, cols := tables[g.R](), tables[g.C]()
	stripe := make([]float32, g.R*g.Cols)
	for at := 0; at < len(x); at += len(stripe) {
		matmul.BatchGemm(matmul.Gemm{
			M: g.R, N: g.C, K: g.C, A: y[at : at+len(stripe)], ARow: g.C, ACol: 1,
			B: cols, BRow: g.C, BCol: 1, C: stripe, CRow: g.Cols,
		}, g.Cols/g.C, g.R*g.C, 0, g.C, 1)
		along := matmul.Gemm{
			M: g.R, N: g.Cols, K: g.R, A: rows, ARow: 1, ACol: g.R,
			B: stripe, BRow: g.Cols, BCol: 1, C: x[at : at+len(stripe)], CRow: g.Cols,
		}
		along.Run(1)
	}
}

// tables holds the cosines of every length, computed when first needed.
var tables = func() (t [MaxSide + 1]func() []float32) {
	for n := range t {
		t[n] = sync.OnceValue(func() []float32 { return cosines(n) })
	}
	return t
}()

// cosines returns the orthonormal DCT-II of length n as a row-major matrix: element (k, i) is
// sqrt(2/n) cos(pi (2i+1) k / 2n), and sqrt(1/n) in row 0.
func cosines(n int) []float32 {
	m := make([]float32, n*n)
	for k := range n {
		scale := math.Sqrt(2 / float64(n))
		if k == 0 {
			scale = math.Sqrt(1 / float64(n))
		}
		for i := range n {
			// The angle is reduced exactly before it is rounded: (2i+1)k modulo 4n is one turn.
			turns := float64((2*i+1)*k%(4*n)) / float64(2*n)
			m[k*n+i] = float32(scale * detmath.Cos64(math.Pi*turns))
		}
	}
	return m
}
