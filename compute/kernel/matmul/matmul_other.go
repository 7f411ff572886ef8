//go:build !amd64

package matmul

import "github.com/starling-network/starling/compute/kernel"

// There is no assembly for this port: Best is Portable, and nothing gets here.

const noTiles = "matmul: no tile kernel on this port"

func (t *tiles) run(kernel.Path) { panic(noTiles) }

func transpose16(dst, src *float32, stride, k int)                    { panic(noTiles) }
func Transpose512(dst, src *float32, stride, k int)                   { panic(noTiles) }
func slivers6(dst, src *float32, panel, stride, tiles, k int)         { panic(noTiles) }
func slivers512(dst, src *float32, panel, stride, tiles, k, rows int) { panic(noTiles) }
func copy16(dst, src *float32, stride, k int)                         { panic(noTiles) }
func panels512(dst, src *float32, panel, stride, tiles, k int)        { panic(noTiles) }
func edge512(dst, src *float32, stride, k, columns int)               { panic(noTiles) }
