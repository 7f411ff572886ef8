package kernel

// The loops of elementwise_amd64.s: n is a positive multiple of 8, dst an operand or memory apart from all of them, and
// path AVX2 or AVX512.

//go:noescape
func addVector(dst, x, y *float32, n int, path Path)

//go:noescape
func subVector(dst, x, y *float32, n int, path Path)

//go:noescape
func mulVector(dst, x, y *float32, n int, path Path)

//go:noescape
func divVector(dst, x, y *float32, n int, path Path)

//go:noescape
func maxVector(dst, x, y *float32, n int, path Path)

//go:noescape
func minVector(dst, x, y *float32, n int, path Path)

//go:noescape
func sqrtVector(dst, x *float32, n int, path Path)

//go:noescape
func adamMVector(dst, m, grad *float32, n int, scale, beta, rest float32, path Path)

//go:noescape
func adamVVector(dst, v, grad *float32, n int, scale, beta, rest float32, path Path)

//go:noescape
func adamPVector(dst, p, m, v *float32, n int, lr, c1, c2, eps, decay float32, path Path)

// sumVector adds x[i] to acc[i%16] for i < n, a positive multiple of 16.
//
//go:noescape
func sumVector(acc, x *float32, n int, path Path)

// largestVector puts the larger of acc[i%16] and x[i], as Max has it, into acc[i%16] for i < n, a positive multiple of
// 16.
//
//go:noescape
func largestVector(acc, x *float32, n int, path Path)
