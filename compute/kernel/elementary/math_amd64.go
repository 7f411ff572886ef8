package elementary

import "github.com/starling-network/starling/compute/kernel"

// The loops of math_amd64.s compute Exp, Logistic, Tanh, Log and Rsqrt of n elements, n a positive multiple of 8; path
// is AVX2 or AVX512.

//go:noescape
func expVector(dst, src *float32, n int, path kernel.Path)

//go:noescape
func logisticVector(dst, src *float32, n int, path kernel.Path)

//go:noescape
func tanhVector(dst, src *float32, n int, path kernel.Path)

//go:noescape
func logVector(dst, src *float32, n int, path kernel.Path)

//go:noescape
func rsqrtVector(dst, src *float32, n int, path kernel.Path)
