//go:build !amd64

package kernel

// There is no assembly for this port: Best is Portable, and nothing gets here.

const noVector = "kernel: no vector kernel on this port"

func addVector(dst, x, y *float32, n int, path Path)  { panic(noVector) }
func subVector(dst, x, y *float32, n int, path Path)  { panic(noVector) }
func mulVector(dst, x, y *float32, n int, path Path)  { panic(noVector) }
func divVector(dst, x, y *float32, n int, path Path)  { panic(noVector) }
func maxVector(dst, x, y *float32, n int, path Path)  { panic(noVector) }
func minVector(dst, x, y *float32, n int, path Path)  { panic(noVector) }
func sqrtVector(dst, x *float32, n int, path Path)    { panic(noVector) }
func largestVector(acc, x *float32, n int, path Path) { panic(noVector) }
func sumVector(acc, x *float32, n int, path Path)     { panic(noVector) }

func adamMVector(dst, m, grad *float32, n int, scale, beta, rest float32, path Path) { panic(noVector) }
func adamVVector(dst, v, grad *float32, n int, scale, beta, rest float32, path Path) { panic(noVector) }
func adamPVector(dst, p, m, v *float32, n int, lr, c1, c2, eps, decay float32, path Path) {
	panic(noVector)
}
