package matmul

// portable computes p in Go, four columns at a time: their chains of FMA32 are independent, which hides the latency.
func (p product) portable() {
	var b [ChunkK][4]float64
	for j := 0; j < p.n; j += 4 {
		cols := min(4, p.n-j)
		for k0 := 0; k0 < p.k; k0 += ChunkK {
			chunk := b[:min(ChunkK, p.k-k0)]
			for k := range chunk {
				for l := range cols {
					chunk[k][l] = float64(p.b.data[(k0+k)*p.b.row+(j+l)*p.b.col])
				}
			}
			for i := range p.m {
				sums := chunkSums(p.a.data[i*p.a.row+k0*p.a.col:], p.a.col, chunk)
				for l := range cols {
					c := &p.c.data[i*p.c.row+(j+l)*p.c.col]
					if k0 == 0 && !p.add {
						*c = sums[l]
					} else {
						*c += sums[l]
					}
				}
			}
		}
	}
}

// chunkSums returns FMA32 chains from +0 over the elements of a with the given stride and the four columns of b. It is
// FMA32 written out: the function is too large for the compiler to inline.
func chunkSums(a []float32, stride int, b [][4]float64) [4]float32 {
	var c0, c1, c2, c3 float32
	for k := range b {
		x, y := float64(a[k*stride]), &b[k]
		p0, p1, p2, p3 := float64(x*y[0]), float64(x*y[1]), float64(x*y[2]), float64(x*y[3])
		s0, s1, s2, s3 := p0+float64(c0), p1+float64(c1), p2+float64(c2), p3+float64(c3)
		if needsOdd(s0) {
			c0 = roundOdd(p0, float64(c0), s0)
		} else {
			c0 = float32(s0)
		}
		if needsOdd(s1) {
			c1 = roundOdd(p1, float64(c1), s1)
		} else {
			c1 = float32(s1)
		}
		if needsOdd(s2) {
			c2 = roundOdd(p2, float64(c2), s2)
		} else {
			c2 = float32(s2)
		}
		if needsOdd(s3) {
			c3 = roundOdd(p3, float64(c3), s3)
		} else {
			c3 = float32(s3)
		}
	}
	return [4]float32{c0, c1, c2, c3}
}
