package matmul

import "github.com/starling-network/starling/compute/kernel"

// run computes t with the tile kernel of path.
func (t *tiles) run(path kernel.Path) {
	if path == kernel.AVX512 {
		runTiles512(t)
	} else {
		runTiles(t)
	}
}

// runTiles computes t, in tiles of 6 x 16. It needs AVX2 and FMA3.
//
//go:noescape
func runTiles(t *tiles)

// runTiles512 computes t, in tiles of 14 x 32. It needs AVX-512 F.
//
//go:noescape
func runTiles512(t *tiles)

// transpose16 writes dst[i*16+l] = src[l*stride/4+i] for i < k and l < 16. stride is in bytes, k a multiple of 8. It
// needs AVX2.
//
//go:noescape
func transpose16(dst, src *float32, stride, k int)

// Transpose512 writes dst[i*32+l] = src[l*stride/4+i] for i < k and l < 16. stride is in bytes, k a multiple of 16. It
// needs AVX-512 F.
//
//go:noescape
func Transpose512(dst, src *float32, stride, k int)

// slivers6 writes dst[t*panel/4+i*6+l] = src[i*stride/4+t*6+l] for t < tiles, i < k and l < 6. panel and stride are in
// bytes, tiles and k positive. It needs AVX.
//
//go:noescape
func slivers6(dst, src *float32, panel, stride, tiles, k int)

// slivers512 is slivers6 with 14 in place of 6, for the l whose bit is set in rows. It needs AVX-512 F.
//
//go:noescape
func slivers512(dst, src *float32, panel, stride, tiles, k, rows int)

// copy16 writes dst[i*16+l] = src[i*stride/4+l] for i < k and l < 16. stride is in bytes, k positive. It needs AVX.
//
//go:noescape
func copy16(dst, src *float32, stride, k int)

// panels512 writes dst[t*panel/4+i*32+l] = src[i*stride/4+t*32+l] for t < tiles, i < k and l < 32. panel and stride are
// in bytes, tiles and k positive. It needs AVX-512 F.
//
//go:noescape
func panels512(dst, src *float32, panel, stride, tiles, k int)

// edge512 writes dst[i*32+l] = src[i*stride/4+l] for i < k and the l < 32 whose bit is set in columns, 0 for the
// others. stride is in bytes, k positive. It needs AVX-512 F.
//
//go:noescape
func edge512(dst, src *float32, stride, k, columns int)
