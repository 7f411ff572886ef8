package matmul

// addRows4 is sum[j] = FMA32(a[i], b[i*bRow/4+j], sum[j]) for i = 0..3 in turn, for j < n. bRow is in bytes, n a
// positive multiple of 16. It needs AVX2 and FMA3.
//
//go:noescape
func addRows4(sum, a, b *float32, bRow, n int)

// columns16 writes the chains of FMA32 from +0 over a[i] and b[l*stride/4+i], i < k ascending, to sum[l] for l < 16.
// stride is in bytes, k a positive multiple of 4. It needs AVX2 and FMA3.
//
//go:noescape
func columns16(sum, a, b *float32, stride, k int)
