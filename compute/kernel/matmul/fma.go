package matmul

import "math"

// FMA32 returns a*b + c rounded once to float32, as a fused multiply-add instruction does.
//
// The product of two float32 is exact in float64, so s = a*b + c there carries one rounding. Rounding s again to
// float32 is wrong only when the first rounding landed on the midpoint of two float32 values. Then, and for results
// below the normal range where midpoints lie elsewhere, the sum is rounded to odd instead, which keeps on the right
// side of the midpoint whatever the exact sum was (Boldo and Melquiond, Emulation of FMA and correctly rounded sums,
// 2008).
func FMA32(a, b, c float32) float32 {
	p := float64(float64(a) * float64(b))
	s := p + float64(c)
	if needsOdd(s) {
		return roundOdd(p, float64(c), s)
	}
	return float32(s)
}

// needsOdd reports whether float32(s) could differ from the rounding of the exact sum behind s.
func needsOdd(s float64) bool {
	const minNormal = (1023 - 126) << 52 // bits of 0x1p-126
	u := math.Float64bits(s)
	return u&(1<<29-1) == 1<<28 || u<<1 < minNormal<<1
}

// roundOdd returns p + c rounded to float32 through float64 rounded to odd; s is p + c rounded to nearest.
func roundOdd(p, c, s float64) float32 {
	// The error of the sum, exact (Knuth's TwoSum).
	t := s - p
	e := (p - (s - t)) + (c - t)
	u := math.Float64bits(s)
	if e != 0 && u&1 == 0 {
		if (e > 0) == (s > 0) {
			u++
		} else {
			u--
		}
	}
	return float32(math.Float64frombits(u))
}

// Chain returns the FMA32 chain from c over n products of elements of a and b, steps apart: what an element of a Gemm
// is within a chunk.
func Chain(c float32, a []float32, aStep int, b []float32, bStep, n int) float32 {
	for k := range n {
		c = FMA32(a[k*aStep], b[k*bStep], c)
	}
	return c
}

// Continue computes the products from up to to, of length, of an element of a Gemm: a are the first factors, b the
// second, bStep apart. chain is the sum of the current chunk, sum the sum of the chunks before; with add, sum begins
// with the old value of C.
func Continue(sum, chain float32, a, b []float32, bStep, length, from, to int, add bool) (float32, float32) {
	for at := from; at < to; {
		end := min(to, at/ChunkK*ChunkK+ChunkK)
		chain = Chain(chain, a[at-from:], 1, b[(at-from)*bStep:], bStep, end-at)
		if at = end; at%ChunkK == 0 || at == length {
			if at <= ChunkK && !add {
				sum = chain
			} else {
				sum += chain
			}
			chain = 0
		}
	}
	return sum, chain
}
