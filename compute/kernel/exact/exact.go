// Package exact is the product of matrices whose blocks are integers with a common exponent: the sum over a block is
// exact, so its order cannot be seen, and every processor with multipliers of integers, or with any unit that adds
// integers below 2^24 exactly, gives the same bits.
//
// It is no faster form of package matmul: it computes other numbers, close to those. Portable is Go alone; the
// assembly, which the program in kernel/gen writes, equals it bit for bit.
package exact

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/matmul"
)

// A Form says how the elements of both matrices are written, along k, before they are multiplied. It is part of the
// numerics.
//
// A block of k has one exponent e: the least integer from -63 on for which no element is greater than top*2^e, with a
// top of 127 for 8 bits and 16319 (127*128+63) for 15. An element x of it becomes the integer nearest to x*2^-e, ties
// to even. A block with an element greater than top*2^38, or with a NaN, is NaN.
//
// For blocks a and b in the row and the column of an element c of the product, in ascending order:
// c = c + float32(S)*2^(ea+eb), where S is the exact sum of the products of their integers. The conversion of S and the
// addition round once each, to nearest, ties to even; the product is exact.
type Form struct {
	Bits  int // 8 or 15
	Block int // elements of k; 32 or 64: an element of a product is disputed a block at a time
}

// Forms are those that layers of a job may have, by the words of training.precision.
var Forms = map[string]Form{"exact15": {Bits: 15, Block: 64}, "exact8": {Bits: 8, Block: 64}}

// Limits of a Form.
const (
	MaxK = 1 << 20 // so that no sum of blocks overflows

	maxBlock    = 64
	minExponent = -63
	maxExponent = 38
)

// Check reports why a form is none.
func (f Form) Check() error {
	if f.Bits != 8 && f.Bits != 15 {
		return fmt.Errorf("exact: integers of %d bits: use 8 or 15", f.Bits)
	}
	if f.Block != 32 && f.Block != maxBlock {
		return fmt.Errorf("exact: blocks of %d elements: use 32 or %d", f.Block, maxBlock)
	}
	return nil
}

// mantissa is what raises the exponent of a float32 when it is added to its bits and the mantissa is above that of top,
// and the exponent of top as float32 writes it.
func (f Form) mantissa() (raise, exponent int32) {
	if f.Bits == 8 {
		return 0x7fffff - 0x7e0000, 127 + 6
	}
	return 0x7fffff - 0x7efc00, 127 + 13
}

// scale returns 2^e and 2^-e of a block whose greatest magnitude has the given bits; NaN for both if the block is NaN.
func (f Form) scale(magnitude uint32) (up, down float32) {
	raise, exponent := f.mantissa()
	e := max(int32((magnitude+uint32(raise))>>23)-exponent, minExponent)
	if e > maxExponent {
		nan := float32(math.NaN())
		return nan, nan
	}
	return math.Float32frombits(uint32(127+e) << 23), math.Float32frombits(uint32(127-e) << 23)
}

// quantise writes the integers of a block, and returns 2^e of it, or NaN.
func (f Form) quantise(to []int16, x []float32) float32 {
	magnitude := uint32(0)
	for _, v := range x {
		magnitude = max(magnitude, math.Float32bits(v)&^(1<<31)) // NaN is above all numbers
	}
	up, down := f.scale(magnitude)
	if up != up {
		clear(to[:len(x)])
		return up
	}
	const nearest = 3 << 22 // added to a float32 below 2^22, it leaves the nearest integer in the last bits
	to = to[:len(x)]
	for i, v := range x {
		to[i] = int16(math.Float32bits(float32(v*down)+nearest) - math.Float32bits(nearest))
	}
	return up
}

// Product is a matrix product in blocks of integers.
type Product struct {
	matmul.Gemm
	Form Form
}

// Batch returns matmul.BatchGemm for products of a form.
func Batch(f Form) func(g matmul.Gemm, batch, aStep, bStep, cStep, threads int) {
	return func(g matmul.Gemm, batch, aStep, bStep, cStep, threads int) {
		for i := range batch {
			p := Product{g, f}
			p.A, p.B, p.C = g.A[i*aStep:], g.B[i*bStep:], g.C[i*cStep:]
			p.Run(threads)
		}
	}
}

// Run computes C on up to threads threads. It panics if A, B or C is too short for its matrix, and for a form that is
// none.
func (p *Product) Run(threads int) {
	p.Check()
	if err := p.Form.Check(); err != nil || p.K > MaxK {
		panic(fmt.Sprintf("exact: a product of %d elements: %v", p.K, err))
	}
	if p.Path == 0 {
		p.Path = kernel.Active()
	}
	if !p.Add {
		for i := range p.M {
			clear(p.C[i*p.CRow : i*p.CRow+p.N])
		}
	}
	if p.M == 0 || p.N == 0 || p.K == 0 {
		return
	}
	if p.Path == kernel.AVX512 && multiplies {
		p.blocked512(threads)
	} else {
		p.blocked(threads)
	}
}
