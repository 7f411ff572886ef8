package codec

import (
	"fmt"
	"math"
	"sync"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/tensor"
)

// DCT keeps the K largest frequencies of every block of a matrix (DeMo, Peng et al. 2024): each block is
// transformed by the orthonormal discrete cosine transform (DCT-II) along both axes and sent as TopK sends a chunk. The
// sides of a block are the largest divisors, up to Side, of the dimensions; a vector is a matrix of one row, and all
// but the last dimension of a larger tensor count as one.
type DCT struct {
	Side int // 1 to maxSide
	K    int
	Bits int // of a value, as in TopK
}

// Check implements Codec.
func (c DCT) Check() error {
	if c.Side < 1 || c.Side > maxSide {
		return fmt.Errorf("codec: no DCT has blocks of side %d", c.Side)
	}
	return TopK{Chunk: c.Side * c.Side, K: c.K, Bits: c.Bits}.Check()
}

// grid is a matrix in blocks: rows x cols elements, blocks of r x c.
type grid struct{ rows, cols, r, c int }

func (c DCT) grid(s tensor.Shape) grid { return gridOf(s, c.Side, s.Elements()) }

// gridOf cuts a tensor into blocks of up to side x side, of which a row has at most so many elements.
func gridOf(s tensor.Shape, side, row int) grid {
	g := grid{rows: 1, cols: 1}
	if n := s.Rank(); n > 0 {
		g.cols = s.Dims[n-1]
		g.rows = s.Elements() / g.cols
	}
	g.r, g.c = divisor(g.rows, min(side, max(1, row/g.cols))), divisor(g.cols, side)
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

func (c DCT) sparse(g grid) TopK { return TopK{Chunk: g.r * g.c, K: c.K, Bits: c.Bits} }

func (c DCT) size(s tensor.Shape) int { return c.sparse(c.grid(s)).size(s) }

func (c DCT) encode(b []byte, x *tensor.Tensor) error {
	g := c.grid(x.Shape)
	y := g.transform(x.F32())
	c.sparse(g).pack(b, y)
	return finite(y)
}

func (c DCT) decode(x *tensor.Tensor, b []byte) error {
	g := c.grid(x.Shape)
	y := make([]float32, g.rows*g.cols)
	if err := c.sparse(g).unpack(y, b); err != nil {
		return err
	}
	if err := finite(y); err != nil {
		return err
	}
	g.inverse(x.F32(), y)
	return nil
}

// Frequencies decodes a payload of Compress without going back: the frequencies of block after block, row-major, zero
// where none was sent. Updates are combined in this form where only what was sent is to count. A tensor that travelled
// as it is gives its frequencies all the same.
func (c DCT) Frequencies(payload []byte, s tensor.Shape) ([]float32, error) {
	if effective(c, s) != Codec(c) {
		x, err := Restore(c, payload, s)
		if err != nil {
			return nil, err
		}
		y := c.grid(s).transform(x.F32())
		return y, finite(y)
	}
	if len(payload) != c.size(s) {
		return nil, fmt.Errorf("%w: %d bytes for %s, want %d", ErrPayload, len(payload), s, c.size(s))
	}
	y := make([]float32, s.Elements())
	if err := c.sparse(c.grid(s)).unpack(y, payload); err != nil {
		return nil, err
	}
	return y, finite(y)
}

// Synthesize returns the tensor that has the given frequencies.
func (c DCT) Synthesize(frequencies []float32, s tensor.Shape) *tensor.Tensor {
	x := tensor.New(s)
	c.grid(s).inverse(x.F32(), frequencies)
	return x
}

// transform returns R x C' for every block x, with the cosines R and C of the block's sides.
func (g grid) transform(x []float32) []float32 {
	rows, cols := tables[g.r](), tables[g.c]()
	y := make([]float32, len(x))
	stripe := make([]float32, g.r*g.cols)
	for at := 0; at < len(x); at += len(stripe) {
		along := matmul.Gemm{
			M: g.r, N: g.cols, K: g.r, A: rows, ARow: g.r, ACol: 1,
			B: x[at : at+len(stripe)], BRow: g.cols, BCol: 1, C: stripe, CRow: g.cols,
		}
		along.Run(1)
		matmul.BatchGemm(matmul.Gemm{
			M: g.r, N: g.c, K: g.c, A: stripe, ARow: g.cols, ACol: 1,
			B: cols, BRow: 1, BCol: g.c, C: y[at : at+len(stripe)], CRow: g.c,
		}, g.cols/g.c, g.c, 0, g.r*g.c, 1)
	}
	return y
}

// inverse writes R' y C for every block y to its place in x.
func (g grid) inverse(x, y []float32) {
	rows, cols := tables[g.r](), tables[g.c]()
	stripe := make([]float32, g.r*g.cols)
	for at := 0; at < len(x); at += len(stripe) {
		matmul.BatchGemm(matmul.Gemm{
			M: g.r, N: g.c, K: g.c, A: y[at : at+len(stripe)], ARow: g.c, ACol: 1,
			B: cols, BRow: g.c, BCol: 1, C: stripe, CRow: g.cols,
		}, g.cols/g.c, g.r*g.c, 0, g.c, 1)
		along := matmul.Gemm{
			M: g.r, N: g.cols, K: g.r, A: rows, ARow: 1, ACol: g.r,
			B: stripe, BRow: g.cols, BCol: 1, C: x[at : at+len(stripe)], CRow: g.cols,
		}
		along.Run(1)
	}
}

// maxSide is the longest side of a block of DCT.
const maxSide = 256

// tables holds the cosines of every length, computed when first needed.
var tables = func() (t [maxSide + 1]func() []float32) {
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
