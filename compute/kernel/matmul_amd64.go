package kernel

// runTiles computes t. It needs AVX2 and FMA3.
//
//go:noescape
func runTiles(t *tiles)

// transpose16 writes dst[i*16+l] = src[l*stride/4+i] for i < k and l < 16. stride is in bytes, k a multiple of 8. It
// needs AVX2.
//
//go:noescape
func transpose16(dst, src *float32, stride, k int)

// slivers6 writes dst[t*panel/4+i*6+l] = src[i*stride/4+t*6+l] for t < tiles, i < k and l < 6. panel and stride are in
// bytes, tiles and k positive. It needs AVX.
//
//go:noescape
func slivers6(dst, src *float32, panel, stride, tiles, k int)

// copy16 writes dst[i*16+l] = src[i*stride/4+l] for i < k and l < 16. stride is in bytes, k positive. It needs AVX.
//
//go:noescape
func copy16(dst, src *float32, stride, k int)
