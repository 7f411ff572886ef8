//go:build !amd64

package elementary

import "github.com/starling-network/starling/compute/kernel"

// There is no assembly for this port, and nothing gets here.

const noVector = "elementary: no vector loops on this port"

func expVector(dst, src *float32, n int, path kernel.Path)      { panic(noVector) }
func logisticVector(dst, src *float32, n int, path kernel.Path) { panic(noVector) }
func tanhVector(dst, src *float32, n int, path kernel.Path)     { panic(noVector) }
func logVector(dst, src *float32, n int, path kernel.Path)      { panic(noVector) }
func rsqrtVector(dst, src *float32, n int, path kernel.Path)    { panic(noVector) }
