package elementary

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
)

func TestCrossEntropyBits(t *testing.T) {
	for _, v := range versions {
		checkCrossEntropy(t, v)
	}
}

func checkCrossEntropy(t *testing.T, version uint32) {
	r, one := rand.New(rand.NewPCG(5, 5)), Math{Version: version}.Scalars()
	for name, value := range kerneltest.Values {
		for _, n := range []int{1, 2, 7, 16, 33, 100, kernel.ChunkSum, kernel.ChunkSum + 5} {
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
					e[j] = one.Exp(v - top)
				}
				sum := kernel.Portable.Sum(e)
				loss[i] = one.Log(sum)
				for j := range e {
					grad[i*n+j] = float32(e[j] * (d[i] / sum))
				}
				if k := targets[i]; k >= 0 && int(k) < n {
					loss[i] -= row[k] - top
					grad[i*n+int(k)] -= d[i]
				}
			}
			for _, p := range kernel.Paths() {
				got := make([]float32, rows)
				CrossEntropy(Math{p, version}, got, x, targets, n, make([]float32, n))
				inPlace := append([]float32{}, x...)
				CrossEntropyGrad(Math{p, version}, inPlace, inPlace, targets, d, n)
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
	CrossEntropy(Math{Version: kernel.Version1}, loss, x, []int64{3, 0}, 4, make([]float32, 4))
	for _, l := range loss {
		if math.Abs(float64(l)-math.Ln2*2) > 1e-6 {
			t.Errorf("loss %v, want log 4", l)
		}
	}
}
