//go:build !amd64

package elementary

import "github.com/starling-network/starling/compute/kernel"

func expSingle(dst, x *float32, n int, path kernel.Path)         { panic(noVector) }
func logisticSingle(dst, x *float32, n int, path kernel.Path)    { panic(noVector) }
func tanhSingle(dst, x *float32, n int, path kernel.Path)        { panic(noVector) }
func logSingle(dst, x *float32, n int, path kernel.Path)         { panic(noVector) }
func rsqrtSingle(dst, x *float32, n int, path kernel.Path)       { panic(noVector) }
func geluSingle(dst, x *float32, n int, path kernel.Path)        { panic(noVector) }
func siluSingle(dst, x *float32, n int, path kernel.Path)        { panic(noVector) }
func geluGradSingle(dst, x, d *float32, n int, path kernel.Path) { panic(noVector) }
func siluGradSingle(dst, x, d *float32, n int, path kernel.Path) { panic(noVector) }
