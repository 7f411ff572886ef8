package kernel

// The loops of elementwise_amd64.s: n is a positive multiple of 8, and dst x, y or memory apart from both. They need AVX.

//go:noescape
func addVector(dst, x, y *float32, n int)

//go:noescape
func subVector(dst, x, y *float32, n int)

//go:noescape
func mulVector(dst, x, y *float32, n int)

//go:noescape
func divVector(dst, x, y *float32, n int)

//go:noescape
func maxVector(dst, x, y *float32, n int)

//go:noescape
func minVector(dst, x, y *float32, n int)

// sumVector adds x[i] to acc[i%16] for i < n, a positive multiple of 16.
//
//go:noescape
func sumVector(acc, x *float32, n int)
