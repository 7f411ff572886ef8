package elementary

import "github.com/starling-network/starling/compute/kernel"

// The loops of single_amd64.s compute the functions of version 2 of n elements, n a positive multiple of 8; path is
// AVX2 or AVX512.

//go:noescape
func expSingle(dst, x *float32, n int, path kernel.Path)

//go:noescape
func logisticSingle(dst, x *float32, n int, path kernel.Path)

//go:noescape
func tanhSingle(dst, x *float32, n int, path kernel.Path)

//go:noescape
func logSingle(dst, x *float32, n int, path kernel.Path)

//go:noescape
func rsqrtSingle(dst, x *float32, n int, path kernel.Path)

//go:noescape
func geluSingle(dst, x *float32, n int, path kernel.Path)

//go:noescape
func siluSingle(dst, x *float32, n int, path kernel.Path)

//go:noescape
func geluGradSingle(dst, x, d *float32, n int, path kernel.Path)

//go:noescape
func siluGradSingle(dst, x, d *float32, n int, path kernel.Path)
