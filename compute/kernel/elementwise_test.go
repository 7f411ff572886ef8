package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/view"
)

// awkward are the float32 on which implementations tend to differ.
var awkward = []float32{0, float32(math.Copysign(0, -1)), 1, -1, math.SmallestNonzeroFloat32,
	-math.SmallestNonzeroFloat32,
	math.Float32frombits(0x007fffff), math.Float32frombits(0x00800000), math.MaxFloat32, -math.MaxFloat32,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.Float32frombits(0xff800001), 0.5, 2.5, 1e-30,
	3e38}

func awkwardVector(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		if x[i] = 2*r.Float32() - 1; r.IntN(2) == 0 {
			x[i] = awkward[r.IntN(len(awkward))]
		}
	}
	return x
}

// sameFloats compares bits, all NaNs being taken as one.
func sameFloats(x, y []float32) bool {
	return slices.EqualFunc(x, y, func(a, b float32) bool {
		return a != a && b != b || math.Float32bits(a) == math.Float32bits(b)
	})
}

func TestVectorPathsEqualTheScalarFunctions(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for name, f := range map[string]struct {
		path   func(p Path, dst, x, y []float32)
		scalar func(dst, x, y []float32)
	}{
		"Add": {Path.Add, Add[float32]}, "Sub": {Path.Sub, Sub[float32]}, "Mul": {Path.Mul, Mul[float32]},
		"Div": {Path.Div, DivFloat}, "Max": {Path.Max, Max[float32]}, "Min": {Path.Min, Min[float32]},
	} {
		for _, p := range Paths() {
			for n := range 150 {
				x, y := awkwardVector(r, n+n%3)[n%3:], awkwardVector(r, n+n%5)[n%5:]
				want, got := make([]float32, n), make([]float32, n)
				f.scalar(want, x, y)
				f.path(p, got, x, y)
				if !sameFloats(got, want) {
					t.Fatalf("%s on %s, %d elements: got %v, want %v", name, p, n, got, want)
				}
				if f.path(p, y, x, y); !sameFloats(y, want) {
					t.Fatalf("%s on %s, %d elements, onto its second operand: got %v, want %v", name, p, n, y, want)
				}
			}
		}
	}
}

func TestVectorPathsOfOneOperand(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, p := range Paths() {
		for n := range 150 {
			x := awkwardVector(r, n+1)
			want, got := make([]float32, n), append([]float32{}, x...)
			SqrtTo(want, x[:n])
			if p.Sqrt(got[1:], x[:n]); !sameFloats(got[1:], want) || !sameFloats(got[:1], x[:1]) {
				t.Fatalf("Sqrt on %s, %d elements: got %v, want %v", p, n, got[1:], want)
			}
		}
	}
}

func TestVectorPathsOfAdam(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	scalar := func(usual float32) float32 {
		if r.IntN(2) == 0 {
			return usual
		}
		return awkwardVector(r, 1)[0]
	}
	for _, path := range Paths() {
		for n := range 150 {
			a, b, c := awkwardVector(r, n), awkwardVector(r, n), awkwardVector(r, n)
			scale, beta, lr, c2, eps, decay := scalar(0.37), scalar(0.95), scalar(3e-4), scalar(1.7), scalar(1e-8), scalar(0.1)
			var want, got [3][]float32
			for i := range want {
				want[i], got[i] = make([]float32, n), append([]float32{}, a...)
			}
			AdamM(want[0], a, b, scale, beta)
			AdamV(want[1], a, b, scale, beta)
			AdamP(want[2], a, b, c, lr, scale, c2, eps, decay)
			path.AdamM(got[0], got[0], b, scale, beta)
			path.AdamV(got[1], got[1], b, scale, beta)
			path.AdamP(got[2], got[2], b, c, lr, scale, c2, eps, decay)
			for i := range want {
				if !sameFloats(got[i], want[i]) {
					t.Fatalf("%s, %d elements, Adam%c: got %v, want %v", path, n, "MVP"[i], got[i], want[i])
				}
			}
		}
	}
}

// TestVectorPathsRoundProducts fails for loops that fuse a product with the sum that it feeds: it counts the elements
// on which that would show.
func TestVectorPathsRoundProducts(t *testing.T) {
	const n, beta, one = 1000, 0.9, 1
	rest := one - float32(beta)
	r := rand.New(rand.NewPCG(8, 8))
	fused := func(x, y, z float32) float32 { return float32(math.FMA(float64(x), float64(y), float64(z))) }
	a, b, out, zero := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range a {
		a[i], b[i] = r.Float32(), r.Float32()
	}
	for _, p := range Paths() {
		for name, f := range map[string]struct {
			run          func()
			x, y, u, w   func(i int) float32 // the result is x*y + u*w
			fusedDiffers int
		}{
			"AdamM": {run: func() { p.AdamM(out, a, b, 1, beta) },
				x: func(i int) float32 { return beta }, y: func(i int) float32 { return a[i] },
				u: func(i int) float32 { return rest }, w: func(i int) float32 { return b[i] }},
			"AdamV": {run: func() { p.AdamV(out, a, b, 1, beta) },
				x: func(i int) float32 { return beta }, y: func(i int) float32 { return a[i] },
				u: func(i int) float32 { return rest }, w: func(i int) float32 { return b[i] * b[i] }},
			"AdamP": {run: func() { p.AdamP(out, a, zero, b, 1, 1, 1, 1, 0.3) },
				x: func(i int) float32 { return 1 }, y: func(i int) float32 { return a[i] },
				u: func(i int) float32 { return -0.3 }, w: func(i int) float32 { return a[i] }},
		} {
			f.run()
			for i, got := range out {
				x, y, u, w := f.x(i), f.y(i), f.u(i), f.w(i)
				if want := float32(x*y) + float32(u*w); got != want {
					t.Fatalf("%s on %s: element %d is %x, want %x", name, p, i, got, want)
				}
				if fused(x, y, float32(u*w)) != got || fused(u, w, float32(x*y)) != got {
					f.fusedDiffers++
				}
			}
			if f.fusedDiffers < n/10 {
				t.Errorf("%s: a fused operation would show in %d of %d elements only", name, f.fusedDiffers, n)
			}
		}
	}
}

func TestExtremaOfZerosAndNaN(t *testing.T) {
	zero, minus, nan := float32(0), float32(math.Copysign(0, -1)), float32(math.NaN())
	for _, p := range Paths() {
		x := []float32{zero, minus, nan, 1, zero, minus, nan, 1}
		y := []float32{minus, zero, 1, nan, zero, minus, nan, 2}
		low, high := make([]float32, 8), make([]float32, 8)
		p.Min(low, x, y)
		p.Max(high, x, y)
		if !sameFloats(low, []float32{minus, minus, nan, nan, zero, minus, nan, 1}) ||
			!sameFloats(high, []float32{zero, zero, nan, nan, zero, minus, nan, 2}) {
			t.Errorf("%s: minimum %v, maximum %v", p, low, high)
		}
	}
}

func TestConversions(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	x := []float32{0, -0.9, 0.9, 255.9, 256, -1, 2147483520, 2147483648, -2147483648, -2147483904, 4294967040, 4294967296,
		9223371487098961920, 9223372036854775808, -9223372036854775808, inf, -inf, nan}
	i32, i64, u8, u32 := make([]int32, len(x)), make([]int64, len(x)), make([]uint8, len(x)), make([]uint32, len(x))
	FloatTo(i32, x)
	FloatTo(i64, x)
	FloatTo(u8, x)
	FloatTo(u32, x)
	const a, b, c, d = math.MinInt32, math.MaxInt32, math.MinInt64, math.MaxInt64
	if want := []int32{0, 0, 0, 255, 256, -1, 2147483520, b, a, a, b, b, b, b, a, b, a, 0}; !slices.Equal(i32, want) {
		t.Errorf("int32: got %v, want %v", i32, want)
	}
	if want := []int64{0, 0, 0, 255, 256, -1, 2147483520, 2147483648, -2147483648, -2147483904, 4294967040, 4294967296,
		9223371487098961920, d, c, d, c, 0}; !slices.Equal(i64, want) {
		t.Errorf("int64: got %v, want %v", i64, want)
	}
	if want := []uint8{0, 0, 0, 255, 255, 0, 255, 255, 0, 0, 255, 255, 255, 255, 0, 255, 0, 0}; !slices.Equal(u8, want) {
		t.Errorf("uint8: got %v, want %v", u8, want)
	}
	const m = math.MaxUint32
	if want := []uint32{0, 0, 0, 255, 256, 0, 2147483520, 2147483648, 0, 0, 4294967040, m, m, m, 0, m, 0,
		0}; !slices.Equal(u32, want) {
		t.Errorf("uint32: got %v, want %v", u32, want)
	}
	narrow := make([]uint8, 2)
	Convert(narrow, []int64{-1, 257})
	odd := make([]float32, 2)
	Convert(odd, []int64{1<<24 + 1, 1<<62 + 1<<38 + 1}) // to nearest, ties to even
	if narrow[0] != 255 || narrow[1] != 1 || odd[0] != 1<<24 || odd[1] != 1<<62+1<<39 {
		t.Errorf("got %v and %v", narrow, odd)
	}
}

func TestIntegerCorners(t *testing.T) {
	x, y := []int32{math.MinInt32, 7, -7, 5}, []int32{-1, -2, 2, 0}
	DivInt(x, x, y)
	if want := []int32{math.MinInt32, -3, -3, 0}; !slices.Equal(x, want) {
		t.Errorf("quotients %v, want %v", x, want)
	}
	z := []int64{math.MinInt64, -3, 3, 0}
	AbsInt(z, z)
	if want := []int64{math.MinInt64, 3, 3, 0}; !slices.Equal(z, want) {
		t.Errorf("absolute values %v, want %v", z, want)
	}
}

// slowSum is the definition of Sum, level by level.
func slowSum(list []float32) float32 {
	for {
		var sums []float32
		for piece := range slices.Chunk(list, ChunkSum) {
			var lane [16]float32
			for i, v := range piece {
				lane[i%16] += v
			}
			for _, w := range []int{8, 4, 2, 1} {
				for i := range w {
					lane[i] += lane[i+w]
				}
			}
			sums = append(sums, lane[0])
		}
		if len(sums) < 2 {
			return append(sums, 0)[0]
		}
		list = sums
	}
}

func TestSumOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	lengths := []int{0, 1, 2, 15, 16, 17, 31, 100, ChunkSum - 1, ChunkSum, ChunkSum + 1, 3*ChunkSum + 17, 40 * ChunkSum}
	if !testing.Short() {
		lengths = append(lengths, ChunkSum*ChunkSum, ChunkSum*ChunkSum+1, ChunkSum*ChunkSum+2*ChunkSum+5)
	}
	for _, n := range lengths {
		x := make([]float32, n)
		for i := range x {
			x[i] = r.Float32() - 0.3
		}
		squares := make([]float32, n)
		Mul(squares, x, x)
		sum, square := slowSum(x), slowSum(squares)
		for _, p := range Paths() {
			column := make([]float32, 1)
			p.SumColumns(column, x, n, 1)
			if got := []float32{p.Sum(x), column[0], p.SumSquares(x)}; !sameFloats(got, []float32{sum, sum, square}) {
				t.Errorf("%s, %d elements: got %v, want %v, %v", p, n, got, sum, square)
			}
		}
	}
}

func TestSumsOfRowsAndColumns(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, size := range [][2]int{{1, 1}, {3, 200}, {17, 129}, {40, 1000}, {5000, 3}} {
		rows, columns := size[0], size[1]
		x := awkwardVector(r, rows*columns)
		byRow, byColumn := make([]float32, rows), make([]float32, columns)
		for i := range byRow {
			byRow[i] = slowSum(x[i*columns : (i+1)*columns])
		}
		for j := range byColumn {
			list := make([]float32, rows)
			for i := range list {
				list[i] = x[i*columns+j]
			}
			byColumn[j] = slowSum(list)
		}
		for _, p := range Paths() {
			a, b := make([]float32, rows), make([]float32, columns)
			p.SumRows(a, x, columns)
			p.SumColumns(b, x, rows, columns)
			if !sameFloats(a, byRow) || !sameFloats(b, byColumn) {
				t.Errorf("%s, %d rows of %d: wrong sums", p, rows, columns)
			}
		}
	}
}

func TestFolds(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for n := 1; n < 300; n += 7 {
		x := awkwardVector(r, 5*n)
		want := make([]float32, 5)
		for i := range want {
			want[i] = x[i*n]
			for _, v := range x[i*n : (i+1)*n] {
				want[i] = max(want[i], v)
			}
		}
		got := make([]float32, 5)
		FoldRows(Best().Max, got, x, n)
		for _, p := range Paths() {
			rows := make([]float32, 5)
			if p.MaxRows(rows, x, n); !sameFloats(rows, want) {
				t.Fatalf("%s, rows of %d: got %v, want %v", p, n, rows, want)
			}
		}
		transposed := make([]float32, 5*n)
		for i := range x {
			transposed[i%n*5+i/n] = x[i]
		}
		columns := make([]float32, 5)
		FoldColumns(Best().Max, columns, transposed, n, 5)
		if !sameFloats(got, want) || !sameFloats(columns, want) {
			t.Fatalf("rows of %d: got %v and %v, want %v", n, got, columns, want)
		}
	}
}

func TestViewsLoadAndStore(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for trial := range 500 {
		v := view.View{Offset: 500}
		for range r.IntN(5) {
			v.Dims = append(v.Dims, 1+r.IntN(4))
			v.Strides = append(v.Strides, r.IntN(15)-5)
		}
		var at []int // position of every element, by counting coordinates
		at = append(at, v.Offset)
		for d, n := range v.Dims {
			var next []int
			for _, a := range at {
				for i := range n {
					next = append(next, a+i*v.Strides[d])
				}
			}
			at = next
		}
		src := make([]uint32, 1000)
		for i := range src {
			src[i] = uint32(i)
		}
		lo := r.IntN(len(at))
		n := r.IntN(len(at) - lo + 1)
		dst, stored, want := make([]uint32, n), make([]uint32, 1000), make([]uint32, 1000)
		Load(dst, src, &v, lo)
		for i := range dst {
			if dst[i] != uint32(at[lo+i]) {
				t.Fatalf("trial %d, %+v from %d: element %d is %d, want %d", trial, v, lo, i, dst[i], at[lo+i])
			}
			want[at[lo+i]] = dst[i]
		}
		if Store(stored, &v, dst, lo); !slices.Equal(stored, want) {
			t.Fatalf("trial %d, %+v: stored elsewhere", trial, v)
		}
	}
}

func TestRowsOutOfRange(t *testing.T) {
	table := []uint32{1, 2, 3, 4, 5, 6}
	dst := make([]uint32, 4)
	if bad := TakeRows(dst, table, []int32{2, 0}, 2); bad != -1 || !slices.Equal(dst, []uint32{5, 6, 1, 2}) {
		t.Errorf("got %v, %d", dst, bad)
	}
	for _, r := range []int64{-1, 3, math.MinInt64, math.MaxInt64, 1 << 32} {
		if bad := TakeRows(dst, table, []int64{0, r}, 2); bad != 1 {
			t.Errorf("row %d: bad index at %d, want 1", r, bad)
		}
		if bad := AddRows(make([]float32, 6), []int64{0, r}, make([]float32, 4), 2, 0, 2); bad != 1 {
			t.Errorf("row %d: bad index at %d, want 1", r, bad)
		}
	}
}

func BenchmarkElementwise(b *testing.B) {
	x, y := make([]float32, 1024), make([]float32, 1024)
	for _, p := range Paths() {
		b.Run(fmt.Sprintf("Add/%s", p), func(b *testing.B) {
			b.SetBytes(4 * 1024)
			for b.Loop() {
				p.Add(x, x, y)
			}
		})
		b.Run(fmt.Sprintf("Sum/%s", p), func(b *testing.B) {
			b.SetBytes(4 * 1024)
			for b.Loop() {
				y[0] = p.Sum(x)
			}
		})
	}
}
