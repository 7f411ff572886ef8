//go:build !amd64

package kernel

// There is no assembly for this port: Best is Portable, and nothing gets here.

func runTiles(*tiles) { panic("kernel: no tile kernel on this port") }

func transpose16(dst, src *float32, stride, k int) { panic("kernel: no tile kernel on this port") }

func slivers6(dst, src *float32, panel, stride, tiles, k int) {
	panic("kernel: no tile kernel on this port")
}

func copy16(dst, src *float32, stride, k int) { panic("kernel: no tile kernel on this port") }
