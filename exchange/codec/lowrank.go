package codec

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// LowRank replaces a matrix M [m, n] by a product of two thin ones, one step of subspace iteration (PowerSGD, Vogels et
// al. 2019, algorithm 1): P = orth(M Q), Q = M' P, M ~ P Q'. The payload is P and Q in float32, 4 Rank (m + n) bytes. A
// vector travels as it is; all but the last dimension of a larger tensor count as one.
//
// Left, Orthonormalize and Right are the steps by themselves. P and Q are linear in M, so workers may average P between
// the steps and Q after the last, and then have the factors of their mean; and the Q of one round, given to Left in the
// next, makes the iteration converge.
type LowRank struct {
	Rank int // at least 1; at most the smaller side of the matrix counts
	// Seed and Stream give the first Q. All workers of a round need the same one; it should differ between rounds and
	// between parameters, or one subspace stays unseen.
	Seed, Stream uint64
}

// Check implements Codec.
func (c LowRank) Check() error {
	if c.Rank < 1 {
		return fmt.Errorf("codec: no factors have rank %d", c.Rank)
	}
	return nil
}

// sides returns the matrix that a tensor is taken for, and the rank of its factors; rank 0 is a tensor that has none.
func (c LowRank) sides(s tensor.Shape) (m, n, rank int) {
	if s.Rank() < 2 {
		return 1, s.Elements(), 0
	}
	n = s.Dims[s.Rank()-1]
	m = s.Elements() / n
	return m, n, min(c.Rank, m, n)
}

func (c LowRank) size(s tensor.Shape) int {
	m, n, rank := c.sides(s)
	if rank == 0 {
		return s.Bytes()
	}
	return 4 * rank * (m + n)
}

func (c LowRank) encode(b []byte, x *tensor.Tensor) error {
	left := c.Left(x, c.Start(x.Shape))
	if err := Orthonormalize(left); err != nil {
		return err
	}
	right := c.Right(x, left)
	putFloats(b, left.F32())
	putFloats(b[4*len(left.F32()):], right.F32())
	return errors.Join(finite(left.F32()), finite(right.F32()))
}

func (c LowRank) decode(x *tensor.Tensor, b []byte) error {
	m, n, rank := c.sides(x.Shape)
	left, right := tensor.New(tensor.Make(tensor.Float32, rank, m)), tensor.New(tensor.Make(tensor.Float32, rank, n))
	getFloats(left.F32(), b)
	getFloats(right.F32(), b[4*rank*m:])
	if err := errors.Join(finite(left.F32()), finite(right.F32())); err != nil {
		return err
	}
	c.product(x, left, right)
	return nil
}

// Start returns the first Q of a tensor of this shape, transposed: [rank, n] normal numbers.
func (c LowRank) Start(s tensor.Shape) *tensor.Tensor {
	_, n, rank := c.sides(s)
	q := tensor.New(tensor.Make(tensor.Float32, rank, n))
	kernel.NormalTo(q.F32(), c.Seed, c.Stream)
	return q
}

// Left returns M Q, transposed: [rank, m]. right is [rank, n].
func (c LowRank) Left(x, right *tensor.Tensor) *tensor.Tensor {
	m, n, rank := c.sides(x.Shape)
	p := tensor.New(tensor.Make(tensor.Float32, rank, m))
	g := kernel.Gemm{M: rank, N: m, K: n, A: right.F32(), ARow: n, ACol: 1, B: x.F32(), BRow: 1, BCol: n, C: p.F32(), CRow: m}
	g.Run(1)
	return p
}

// Right returns M' P, transposed: [rank, n]. left is [rank, m] with orthonormal rows.
func (c LowRank) Right(x, left *tensor.Tensor) *tensor.Tensor {
	m, n, rank := c.sides(x.Shape)
	q := tensor.New(tensor.Make(tensor.Float32, rank, n))
	g := kernel.Gemm{M: rank, N: n, K: m, A: left.F32(), ARow: m, ACol: 1, B: x.F32(), BRow: n, BCol: 1, C: q.F32(), CRow: n}
	g.Run(1)
	return q
}

// product writes P Q' to x.
func (c LowRank) product(x, left, right *tensor.Tensor) {
	m, n, rank := c.sides(x.Shape)
	g := kernel.Gemm{M: m, N: n, K: rank, A: left.F32(), ARow: 1, ACol: m, B: right.F32(), BRow: n, BCol: 1, C: x.F32(), CRow: n}
	g.Run(1)
}

// Orthonormalize makes the rows of p orthonormal, in place, by modified Gram-Schmidt in float64. A row that depends on
// those before it, up to rounding, becomes zero.
func Orthonormalize(p *tensor.Tensor) error {
	rank, m := p.Shape.Dims[0], p.Shape.Dims[1]
	x := p.F32()
	if err := finite(x); err != nil {
		return err
	}
	row := make([]float64, m)
	for i := range rank {
		v := x[i*m : (i+1)*m]
		for k := range v {
			row[k] = float64(v[k])
		}
		length := math.Sqrt(dot(row, row))
		for j := range i {
			u := x[j*m : (j+1)*m]
			var along float64
			for k, w := range u {
				along += float64(float64(w) * row[k])
			}
			for k, w := range u {
				row[k] -= float64(along * float64(w))
			}
		}
		rest := math.Sqrt(dot(row, row))
		for k := range v {
			v[k] = 0
			if rest > 1e-6*length {
				v[k] = float32(row[k] / rest)
			}
		}
	}
	return nil
}

func dot(x, y []float64) float64 {
	var sum float64
	for i, v := range x {
		sum += float64(v * y[i])
	}
	return sum
}
