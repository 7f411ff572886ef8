package exact

import (
	"flag"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
	"github.com/starling-network/starling/compute/kernel/matmul"
)

// Without this flag a part of the drawn products is computed.
var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "", "compute all drawn products, as .ci/run does")

var forms = []Form{{8, 32}, {8, 64}, {15, 32}, {15, 64}}

// naive computes p as the documentation of Form says, in numbers of any precision.
func naive(p *Product) {
	for i := range p.M {
		for j := range p.N {
			c := float32(0)
			if p.Add {
				c = p.C[i*p.CRow+j]
			}
			for k := 0; k < p.K; k += p.Form.Block {
				n := min(p.Form.Block, p.K-k)
				a, b := make([]float32, n), make([]float32, n)
				for l := range n {
					a[l], b[l] = p.A[i*p.ARow+(k+l)*p.ACol], p.B[(k+l)*p.BRow+j*p.BCol]
				}
				x, ex, ok1 := integers(p.Form, a)
				y, ey, ok2 := integers(p.Form, b)
				if !ok1 || !ok2 {
					c = float32(math.NaN())
					continue
				}
				sum := new(big.Int)
				for l := range n {
					sum.Add(sum, new(big.Int).Mul(x[l], y[l]))
				}
				rounded, _ := new(big.Float).SetInt(sum).Float32() // to nearest, ties to even
				c += float32(math.Ldexp(float64(rounded), ex+ey))
			}
			p.C[i*p.CRow+j] = c
		}
	}
}

// integers are those of a block, and its exponent; false if it is NaN.
func integers(f Form, x []float32) (out []*big.Int, e int, ok bool) {
	top := map[int]int64{8: 127, 15: 16319}[f.Bits]
	exact := func(v float32) *big.Rat { return new(big.Rat).SetFloat64(float64(v)) }
	two := func(e int) *big.Rat {
		r := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(max(e, -e))))
		if e < 0 {
			r.Inv(r)
		}
		return r
	}
	fits := func(e int) bool {
		limit := new(big.Rat).Mul(new(big.Rat).SetInt64(top), two(e))
		for _, v := range x {
			if v != v || math.IsInf(float64(v), 0) || new(big.Rat).Abs(exact(v)).Cmp(limit) > 0 {
				return false
			}
		}
		return true
	}
	if !fits(38) {
		return nil, 0, false
	}
	for e = -63; !fits(e); e++ {
	}
	for _, v := range x {
		r := new(big.Rat).Mul(exact(v), two(-e))
		// To nearest, ties to even: floor(r + 1/2), less one if that was a tie and is odd.
		half := new(big.Rat).Add(r, big.NewRat(1, 2))
		q := new(big.Int).Div(half.Num(), half.Denom())
		if half.IsInt() && q.Bit(0) == 1 {
			q.Sub(q, big.NewInt(1))
		}
		out = append(out, q)
	}
	return out, e, true
}

func random(r *rand.Rand, f Form, m, n, k int, value func(kerneltest.Random) float32) *Product {
	layout := func(rows, cols int) (data []float32, row, col int) {
		row, col = cols+r.IntN(3), 1
		switch r.IntN(3) {
		case 0:
			row, col = 1, rows+r.IntN(3)
		case 1:
			col = 1 + r.IntN(2)
			row = cols * col
		}
		data = make([]float32, max(1, (rows-1)*row+(cols-1)*col+1))
		for i := range data {
			data[i] = value(r)
		}
		return data, row, col
	}
	p := &Product{Form: f}
	p.M, p.N, p.K, p.CRow, p.Add = m, n, k, n+r.IntN(3), r.IntN(3) == 0
	p.A, p.ARow, p.ACol = layout(m, k)
	p.B, p.BRow, p.BCol = layout(k, n)
	p.C = make([]float32, max(0, (m-1)*p.CRow+n))
	for i := range p.C {
		p.C[i] = float32(r.NormFloat64())
	}
	return p
}

// requireSame fails unless p has the bits of want on every path and number of threads, and leaves gaps between rows
// alone.
func requireSame(t *testing.T, p *Product, reference func(*Product)) {
	t.Helper()
	want := *p
	want.C = append([]float32(nil), p.C...)
	reference(&want)
	for _, path := range kernel.Paths() {
		for _, threads := range []int{1, 3} {
			got := *p
			got.C, got.Path = append([]float32(nil), p.C...), path
			got.Run(threads)
			for i := range want.C {
				if !kerneltest.Same(got.C[i], want.C[i]) {
					t.Fatalf("%s, %d threads, %+v, %d x %d x %d: element %d is %x, want %x", path, threads, p.Form, p.M, p.K,
						p.N, i, got.C[i], want.C[i])
				}
			}
		}
	}
}

func TestBitsOfTheSpecification(t *testing.T) {
	r, draws := rand.New(rand.NewPCG(1, 1)), 24
	if !*long {
		draws = 8
	}
	edge := map[string]func(r kerneltest.Random) float32{
		"limit": func(r kerneltest.Random) float32 { return []float32{16319, -16319, 127, -127, 128, 16320}[r.IntN(6)] },
		"ties":  func(r kerneltest.Random) float32 { return float32(r.IntN(509)-254) / 2 },
		"ends": func(r kerneltest.Random) float32 {
			return []float32{127 << 38, -127 << 38, 16319 << 38, 0x1p-60, 0x1p-63, 0x1p-64, 0x1.8p-63, 0}[r.IntN(8)]
		},
	}
	for name, value := range kerneltest.Values {
		edge[name] = value
	}
	for name, value := range edge {
		t.Run(name, func(t *testing.T) {
			for i := range draws {
				f := forms[i%len(forms)]
				m, n, k := []int{1, 3, 4, 5, 9}[r.IntN(5)], []int{1, 7, 8, 9, 16, 17, 20}[r.IntN(7)],
					[]int{1, 2, 3, 5, 31, 32, 33, 127, 128, 130, 300}[r.IntN(11)]
				requireSame(t, random(r, f, m, n, k, value), naive)
			}
		})
	}
}

// TestChunksAndStrips reaches the edges of packed chunks and strips.
func TestChunksAndStrips(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, s := range [][3]int{{5, strip + 9, 3}, {3, 2*strip + 1, 130}, {66, 9, 2*chunk + 129}, {4, 16, chunk}, {7, 8,
		chunk + 1}} {
		for _, f := range forms {
			p := random(r, f, s[0], s[1], s[2], kerneltest.Values["normal"])
			requireSame(t, p, func(p *Product) {
				for k := 0; k < p.K; k += f.Block { // a block at a time
					part := *p
					part.Path, part.Add = kernel.Portable, p.Add || k > 0
					part.K = min(f.Block, p.K-k)
					part.A, part.B = p.A[k*p.ACol:], p.B[k*p.BRow:]
					part.Run(1)
				}
			})
		}
	}
}

func TestRefused(t *testing.T) {
	for _, f := range []Form{{7, 64}, {16, 64}, {8, 0}, {8, 16}, {15, 128}} {
		if f.Check() == nil {
			t.Errorf("%+v is a form", f)
		}
	}
	short := Product{Form: Form{8, 64}, Gemm: matmul.Gemm{M: 2, N: 2, K: 2, A: make([]float32, 4), ARow: 2, ACol: 1,
		B: make([]float32, 3), BRow: 2, BCol: 1, C: make([]float32, 4), CRow: 2}}
	defer func() {
		if recover() == nil {
			t.Error("a matrix that is too short was multiplied")
		}
	}()
	short.Run(1)
}

func BenchmarkProduct(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, f := range []Form{{8, 64}, {15, 64}} {
		for _, s := range [][3]int{{1024, 1280, 320}, {1024, 320, 1280}, {512, 512, 512}} {
			p := random(r, f, s[0], s[1], s[2], kerneltest.Values["normal"])
			for _, path := range kernel.Paths()[1:] {
				p.Path = path
				b.Run(fmt.Sprintf("%s/%d bits/%dx%dx%d", path, f.Bits, s[0], s[2], s[1]), func(b *testing.B) {
					for range b.N {
						p.Run(1)
					}
					b.ReportMetric(float64(s[0])*float64(s[1])*float64(s[2])*float64(b.N)/b.Elapsed().Seconds()/1e9, "G/s")
				})
			}
		}
	}
}
