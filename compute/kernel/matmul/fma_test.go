package matmul

import (
	"math"
	"math/big"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
	"github.com/starling-network/starling/compute/philox"
)

// fmaReference rounds the exact sum with math/big; finite operands.
func fmaReference(a, b, c float32) float32 {
	exact := func(x float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(x)) }
	p := new(big.Float).SetPrec(2000).Mul(exact(a), exact(b))
	s := new(big.Float).SetPrec(2000).Add(p, exact(c))
	if s.Sign() == 0 { // big has its own zeros: IEEE 754 sums of zeros are exact in float64
		return float32(float64(a)*float64(b) + float64(c))
	}
	f, _ := s.Float32()
	return f
}

func finite(x float32) bool { return math.Abs(float64(x)) <= math.MaxFloat32 }

func TestFMA32(t *testing.T) {
	twice := 0 // how many operands a second rounding spoils: the test must see some
	for i := range uint64(200000) {
		a, b, c := kerneltest.FMAOperands(philox.Block(11, 0, i))
		if !finite(a) || !finite(b) || !finite(c) {
			continue
		}
		got, want := FMA32(a, b, c), fmaReference(a, b, c)
		if !kerneltest.Same(got, want) {
			t.Fatalf("FMA32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
		if float32(math.FMA(float64(a), float64(b), float64(c))) != want {
			twice++
		}
	}
	t.Logf("%d operands are spoilt by a second rounding", twice)
	if twice == 0 {
		t.Error("no operand tests the rounding to odd")
	}
}

func TestFMA32Cases(t *testing.T) {
	inf, nan, zero := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	for _, x := range []struct{ a, b, c, want float32 }{
		// float32(math.FMA) gives 0x1.000008p-127.
		{0x1p-75 * (1 + 0x1p-23), 0x1p-75 * (1 - 0x1p-23), 0x1p-127 + 0x1p-149, 0x1.000004p-127},
		{1, 1, -1, 0}, {zero, 1, zero, zero}, {zero, 1, 0, 0}, {-1, 0, zero, zero}, {0, inf, 1, nan}, {inf, 1, -inf, nan},
		{inf, 2, 1, inf}, {1, 2, -inf, -inf}, {nan, 1, 1, nan}, {1, nan, inf, nan}, {1, 1, nan, nan},
		{math.MaxFloat32, 2, -inf, -inf}, {math.MaxFloat32, math.MaxFloat32, 1, inf},
		{math.MaxFloat32, 2, -math.MaxFloat32, math.MaxFloat32},
		{0x1p-149, 0x1p-149, 0, 0}, {-0x1p-149, 0x1p-149, 0, zero}, {0x1p-149, 0x1p-149, 0x1p-149, 0x1p-149},
		{0x1p-75, 0x1p-75, 0, 0}, {0x1p-75, 0x1.000002p-75, 0, 0x1p-149},
	} {
		if got := FMA32(x.a, x.b, x.c); !kerneltest.Same(got, x.want) {
			t.Errorf("FMA32(%x, %x, %x) = %x, want %x", x.a, x.b, x.c, got, x.want)
		}
	}
}

// TestFMA32Hardware compares FMA32 with the instructions of every path, through products of two terms: 1*c and a*b.
func TestFMA32Hardware(t *testing.T) {
	const n, rounds = 16, 40000 // 10 million triples
	a, b, c := make([]float32, 2*n), make([]float32, 2*n), make([]float32, n*n)
	g := Gemm{M: n, N: n, K: 2, A: a, ARow: 2, ACol: 1, B: b, BRow: n, BCol: 1, C: c, CRow: n}
	for round := range uint64(rounds) {
		var want [n * n]float32
		for i := range n {
			x, y, z := kerneltest.FMAOperands(philox.Block(12, round, uint64(i)))
			a[2*i], a[2*i+1], b[i], b[n+i] = 1, x, z, y
		}
		for i := range want {
			// The chain starts from +0: its first term is never -0.
			want[i] = FMA32(a[2*(i/n)+1], b[n+i%n], FMA32(1, b[i%n], 0))
		}
		for _, g.Path = range kernel.Paths()[1:] {
			g.Run(1)
			for i, got := range c {
				if !kerneltest.Same(got, want[i]) {
					t.Fatalf("FMA32(%x, %x, %x) = %x, the instruction of %s gives %x", a[2*(i/n)+1], b[n+i%n], b[i%n], want[i],
						g.Path, got)
				}
			}
		}
	}
}
