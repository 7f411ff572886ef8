package kernel

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
)

func TestCrossEntropyBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for name, value := range kerneltest.Values {
		for _, n := range []int{1, 2, 7, 16, 33, 100, ChunkSum, ChunkSum + 5} {
			const rows = 5
			x, d := make([]float32, rows*n), make([]float32, rows)
			targets := []int32{0, int32(n - 1), int32(r.IntN(n)), -1, int32(n)}
			for i := range x {
				x[i] = value(r)
			}
			for i := range d {
				d[i] = value(r)
			}
			loss, grad := make([]float32, rows), make([]float32, rows*n)
			for i := range rows {
				row, e := x[i*n:(i+1)*n], make([]float32, n)
				top := row[0]
				for _, v := range row {
					top = max(top, v)
				}
				for j, v := range row {
					e[j] = detmath.Exp(v - top)
				}
				sum := Portable.Sum(e)
				loss[i] = detmath.Log(sum)
				for j := range e {
					grad[i*n+j] = float32(e[j] * (d[i] / sum))
				}
				if k := targets[i]; k >= 0 && int(k) < n {
					loss[i] -= row[k] - top
					grad[i*n+int(k)] -= d[i]
				}
			}
			for _, p := range Paths() {
				got := make([]float32, rows)
				CrossEntropy(p, got, x, targets, n, make([]float32, n))
				inPlace := append([]float32{}, x...)
				CrossEntropyGrad(p, inPlace, inPlace, targets, d, n)
				for i := range inPlace {
					if !kerneltest.Same(inPlace[i], grad[i]) || !kerneltest.Same(got[i/n], loss[i/n]) {
						t.Fatalf("%s, %s, rows of %d: element %d is %x and its loss %x, want %x and %x", name, p, n, i, inPlace[i],
							got[i/n], grad[i], loss[i/n])
					}
				}
			}
		}
	}
}

// TestCrossEntropyOfEvenScores has a known answer, also where exponentials overflow.
func TestCrossEntropyOfEvenScores(t *testing.T) {
	x := []float32{1e4, 1e4, 1e4, 1e4, -1e4, -1e4, -1e4, -1e4}
	loss := make([]float32, 2)
	CrossEntropy(0, loss, x, []int64{3, 0}, 4, make([]float32, 4))
	for _, l := range loss {
		if math.Abs(float64(l)-math.Ln2*2) > 1e-6 {
			t.Errorf("loss %v, want log 4", l)
		}
	}
}
