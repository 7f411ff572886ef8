//go:build !amd64

package kernel

// There is no assembly for this port: Best is Portable, and nothing gets here.

func addVector(dst, x, y *float32, n int) { panic("kernel: no vector kernel on this port") }
func subVector(dst, x, y *float32, n int) { panic("kernel: no vector kernel on this port") }
func mulVector(dst, x, y *float32, n int) { panic("kernel: no vector kernel on this port") }
func divVector(dst, x, y *float32, n int) { panic("kernel: no vector kernel on this port") }
func maxVector(dst, x, y *float32, n int) { panic("kernel: no vector kernel on this port") }
func minVector(dst, x, y *float32, n int) { panic("kernel: no vector kernel on this port") }
func sumVector(acc, x *float32, n int)    { panic("kernel: no vector kernel on this port") }
