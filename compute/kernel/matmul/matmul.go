// Package matmul is the matrix product of float32, to the last bit the same on every port, path and number of threads:
// every element is a chain of fused multiply-adds over k (FMA32) in chunks of ChunkK, whose sums are added in ascending
// order. Portable is Go alone; the assembly, which the program in kernel/gen writes, equals it bit for bit.
package matmul

import (
	"fmt"

	"github.com/starling-network/starling/compute/kernel"
)

// ChunkK is the length of the pieces in which a matrix product accumulates over k. It is part of the numerics.
const ChunkK = 512

// Gemm is a matrix product C = A x B of float32, with A [M, K], B [K, N] and C [M, N].
//
// A and B are read through strides counted in elements, so that a transpose is a swap of two strides: A[i, k] is
// A[i*ARow+k*ACol], B[k, j] is B[k*BRow+j*BCol]. Strides are not negative; 0 repeats a row or column.
// C[i, j] is C[i*CRow+j] with CRow >= N. C shares no memory with A and B; what it held is overwritten, or with Add is
// the first term of the sum.
type Gemm struct {
	M, N, K    int
	A          []float32
	ARow, ACol int
	B          []float32
	BRow, BCol int
	C          []float32
	CRow       int
	Add        bool        // C = C + A x B
	Path       kernel.Path // the kernels to use; 0 is the active path
}

// Run computes C on up to threads threads: c = +0; for k ascending within a chunk of ChunkK, c = FMA32(a, b, c); then
// the chunk sums are added in ascending order, with Add to the old value of C. It panics if A, B or C is too short
// for its matrix.
func (g *Gemm) Run(threads int) {
	g.Check()
	g.product().run(threads)
}

// BatchGemm runs batch products of one shape. Product i reads A and B and writes C from the elements i*aStep, i*bStep
// and i*cStep on; a step of 0 shares an operand (never C).
func BatchGemm(g Gemm, batch, aStep, bStep, cStep, threads int) {
	if batch <= 0 {
		return
	}
	for _, i := range []int{0, batch - 1} {
		one := g.at(i*aStep, i*bStep, i*cStep)
		one.Check()
	}
	if batch < threads {
		for i := range batch {
			one := g.at(i*aStep, i*bStep, i*cStep)
			one.product().run(threads)
		}
		return
	}
	kernel.Parallel(threads, batch, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			one := g.at(i*aStep, i*bStep, i*cStep)
			one.product().run(1)
		}
	})
}

// at returns g with its operands from the elements a, b and c on.
func (g Gemm) at(a, b, c int) Gemm {
	g.A, g.B, g.C = g.A[min(a, len(g.A)):], g.B[min(b, len(g.B)):], g.C[min(c, len(g.C)):]
	return g
}

// Check panics unless every element of the matrices lies in its slice: the assembly checks nothing.
func (g *Gemm) Check() {
	if g.M < 0 || g.N < 0 || g.K < 0 {
		panic(fmt.Sprintf("matmul: matrix product of negative size %d x %d x %d", g.M, g.K, g.N))
	}
	inside := func(name string, n, rows, cols, row, col int) {
		if rows > 0 && cols > 0 && (row < 0 || col < 0 || (rows-1)*row+(cols-1)*col >= n) {
			panic(fmt.Sprintf("matmul: matrix %s of %d x %d with strides %d and %d exceeds its %d elements", name, rows, cols,
				row, col, n))
		}
	}
	inside("A", len(g.A), g.M, g.K, g.ARow, g.ACol)
	inside("B", len(g.B), g.K, g.N, g.BRow, g.BCol)
	inside("C", len(g.C), g.M, g.N, g.CRow, 1)
	if g.M > 1 && g.CRow < g.N {
		panic(fmt.Sprintf("matmul: rows of C overlap: stride %d for %d columns", g.CRow, g.N))
	}
}

// matrix is a strided view: element (i, j) is data[i*row+j*col].
type matrix struct {
	data     []float32
	row, col int
}

func (m matrix) from(i, j int) matrix { return matrix{m.data[i*m.row+j*m.col:], m.row, m.col} }
func (m matrix) transposed() matrix   { return matrix{m.data, m.col, m.row} }

// product is c = a x b over m rows, n columns and an inner length of k.
type product struct {
	path    kernel.Path
	m, n, k int
	a, b, c matrix
	add     bool
}

// narrow is the number of columns below which a product is that of the transposes.
const narrow = 16

// product returns the work of g. A product with few columns is turned into that of the transposes, which has the same
// chains of operations and gives the vectors, which run along columns, something to do.
func (g *Gemm) product() product {
	p := product{
		path: g.Path, m: g.M, n: g.N, k: g.K, add: g.Add,
		a: matrix{g.A, g.ARow, g.ACol}, b: matrix{g.B, g.BRow, g.BCol}, c: matrix{g.C, g.CRow, 1},
	}
	if p.path == 0 {
		p.path = kernel.Active()
	}
	if p.n < narrow && p.n < p.m {
		p.m, p.n = p.n, p.m
		p.a, p.b, p.c = p.b.transposed(), p.a.transposed(), p.c.transposed()
	}
	return p
}

// part returns the rows [i0, i1) and columns [j0, j1) of p.
func (p product) part(i0, i1, j0, j1 int) product {
	p.a, p.b, p.c = p.a.from(i0, 0), p.b.from(0, j0), p.c.from(i0, j0)
	p.m, p.n = i1-i0, j1-j0
	return p
}

// run computes p on up to threads threads.
func (p product) run(threads int) {
	if p.m == 0 || p.n == 0 {
		return
	}
	if p.k == 0 {
		if p.add {
			return
		}
		for i := range p.m {
			for j := range p.n {
				p.c.data[i*p.c.row+j*p.c.col] = 0
			}
		}
		return
	}
	const worthwhile = 1 << 16 // multiplications for one more thread
	if threads = min(threads, 1+p.m*p.n*p.k/worthwhile); threads <= 1 {
		p.serial()
	} else {
		p.parallel(threads)
	}
}

// parallel computes p on a grid of up to threads parts.
func (p product) parallel(threads int) {
	s := &tilings[p.path]
	tilesM, tilesN := (p.m+s.rows-1)/s.rows, (p.n+s.cols-1)/s.cols
	rows, cols := s.grid(tilesM, tilesN, threads)
	kernel.Parallel(rows*cols, rows*cols, func(lo, hi int) {
		for t := lo; t < hi; t++ {
			r, c := t/cols, t%cols
			p.part(
				r*tilesM/rows*s.rows, min((r+1)*tilesM/rows*s.rows, p.m),
				c*tilesN/cols*s.cols, min((c+1)*tilesN/cols*s.cols, p.n),
			).serial()
		}
	})
}

// grid cuts m x n tiles into at most threads parts, as many as it can and as square as it can.
func (s *tiling) grid(m, n, threads int) (rows, cols int) {
	rows, cols = 1, 1
	for r := 1; r <= min(threads, m); r++ {
		c := min(threads/r, n)
		more := r*c - rows*cols
		if more > 0 || more == 0 && m*s.rows*c+n*s.cols*r < m*s.rows*cols+n*s.cols*rows {
			rows, cols = r, c
		}
	}
	return rows, cols
}

// few is the number of multiplications up to which a product is computed by its elements: packing takes longer.
const few = 16

// elements computes p, whose k is within a chunk, by the definition of its elements.
func (p product) elements() {
	for i := range p.m {
		for j := range p.n {
			sum := Chain(0, p.a.data[i*p.a.row:], p.a.col, p.b.data[j*p.b.col:], p.b.row, p.k)
			if c := &p.c.data[i*p.c.row+j*p.c.col]; p.add {
				*c += sum
			} else {
				*c = sum
			}
		}
	}
}

// serial computes p on this thread.
func (p product) serial() {
	switch {
	case p.m*p.n*p.k <= few:
		p.elements()
	case !p.path.Floats():
		p.portable()
	case p.isRow():
		p.row()
	default:
		p.blocked()
	}
}
