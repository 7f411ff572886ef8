package kernel

import (
	"bytes"
	"math"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// adversarialFMA makes operands of FMA32 from random words: any bits; or c and a product within 2^-40 of half a unit in
// the last place of c (or some halves, or a quarter), where rounding twice goes wrong, also below the normal range.
func adversarialFMA(w [4]uint32) (a, b, c float32) {
	if w[3]%4 == 0 {
		return math.Float32frombits(w[0]), math.Float32frombits(w[1]), math.Float32frombits(w[2])
	}
	c = math.Float32frombits(w[2] % 0x7e800000)
	if w[3]%4 == 1 {
		c = math.Float32frombits(w[2] % 0x01000000) // subnormal, or barely normal
	}
	exponent := max(math.Ilogb(float64(c)), -126) - 24 - int(w[3]>>2%4/3)
	near := float32(w[0]%8) * 0x1p-23
	a = float32(math.Ldexp(float64(1+near), exponent/2)) * float32(1+w[0]>>3%4)
	b = float32(math.Ldexp(float64(1-near), exponent-exponent/2))
	if w[1]&1 != 0 {
		a = -a
	}
	if w[1]&2 != 0 {
		c = -c
	}
	return a, b, c
}

// fmaReference rounds the exact sum with math/big; finite operands.
func fmaReference(a, b, c float32) float32 {
	exact := func(x float32) *big.Float { return new(big.Float).SetPrec(2000).SetFloat64(float64(x)) }
	p := new(big.Float).SetPrec(2000).Mul(exact(a), exact(b))
	s := new(big.Float).SetPrec(2000).Add(p, exact(c))
	if s.Sign() == 0 { // big has its own zeros: IEEE 754 sums of zeros are exact in float64
		return float32(float64(a)*float64(b) + float64(c))
	}
	f, _ := s.Float32()
	return f
}

func finite(x float32) bool { return math.Abs(float64(x)) <= math.MaxFloat32 }

func TestFMA32(t *testing.T) {
	twice := 0 // how many operands a second rounding spoils: the test must see some
	for i := range uint64(200000) {
		a, b, c := adversarialFMA(PhiloxU32(11, 0, i))
		if !finite(a) || !finite(b) || !finite(c) {
			continue
		}
		got, want := FMA32(a, b, c), fmaReference(a, b, c)
		if !same(got, want) {
			t.Fatalf("FMA32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
		if float32(math.FMA(float64(a), float64(b), float64(c))) != want {
			twice++
		}
	}
	t.Logf("%d operands are spoilt by a second rounding", twice)
	if twice == 0 {
		t.Error("no operand tests the rounding to odd")
	}
}

func TestFMA32Cases(t *testing.T) {
	inf, nan, zero := float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1))
	for _, x := range []struct{ a, b, c, want float32 }{
		// float32(math.FMA) gives 0x1.000008p-127.
		{0x1p-75 * (1 + 0x1p-23), 0x1p-75 * (1 - 0x1p-23), 0x1p-127 + 0x1p-149, 0x1.000004p-127},
		{1, 1, -1, 0}, {zero, 1, zero, zero}, {zero, 1, 0, 0}, {-1, 0, zero, zero}, {0, inf, 1, nan}, {inf, 1, -inf, nan},
		{inf, 2, 1, inf}, {1, 2, -inf, -inf}, {nan, 1, 1, nan}, {1, nan, inf, nan}, {1, 1, nan, nan},
		{math.MaxFloat32, 2, -inf, -inf}, {math.MaxFloat32, math.MaxFloat32, 1, inf},
		{math.MaxFloat32, 2, -math.MaxFloat32, math.MaxFloat32},
		{0x1p-149, 0x1p-149, 0, 0}, {-0x1p-149, 0x1p-149, 0, zero}, {0x1p-149, 0x1p-149, 0x1p-149, 0x1p-149},
		{0x1p-75, 0x1p-75, 0, 0}, {0x1p-75, 0x1.000002p-75, 0, 0x1p-149},
	} {
		if got := FMA32(x.a, x.b, x.c); !same(got, x.want) {
			t.Errorf("FMA32(%x, %x, %x) = %x, want %x", x.a, x.b, x.c, got, x.want)
		}
	}
}

// TestFMA32Hardware compares FMA32 with the instructions of every path, through products of two terms: 1*c and a*b.
func TestFMA32Hardware(t *testing.T) {
	const n, rounds = 16, 40000 // 10 million triples
	a, b, c := make([]float32, 2*n), make([]float32, 2*n), make([]float32, n*n)
	g := Gemm{M: n, N: n, K: 2, A: a, ARow: 2, ACol: 1, B: b, BRow: n, BCol: 1, C: c, CRow: n}
	for round := range uint64(rounds) {
		var want [n * n]float32
		for i := range n {
			x, y, z := adversarialFMA(PhiloxU32(12, round, uint64(i)))
			a[2*i], a[2*i+1], b[i], b[n+i] = 1, x, z, y
		}
		for i := range want {
			// The chain starts from +0: its first term is never -0.
			want[i] = FMA32(a[2*(i/n)+1], b[n+i%n], FMA32(1, b[i%n], 0))
		}
		for _, g.Path = range Paths()[1:] {
			g.Run(1)
			for i, got := range c {
				if !same(got, want[i]) {
					t.Fatalf("FMA32(%x, %x, %x) = %x, the instruction of %s gives %x", a[2*(i/n)+1], b[n+i%n], b[i%n], want[i],
						g.Path, got)
				}
			}
		}
	}
}

// TestNoContraction looks for fused instructions in what the compiler makes of this package where it is free to fuse: a
// product that feeds a sum without an explicit conversion.
func TestNoContraction(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the package")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("no go tool")
	}
	fused := regexp.MustCompile(`(?m)^\s.*\((\S+\.go:\d+)\)\s+(V?FN?M(?:ADD|SUB)\S*)`)
	for _, port := range [][]string{{"GOARCH=arm64"}, {"GOARCH=amd64", "GOAMD64=v3"}} {
		cmd := exec.Command(goTool, "build", "-gcflags=-S", ".")
		cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), port...)
		listing, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", port, err, listing)
		}
		if !bytes.Contains(listing, []byte("TEXT")) {
			t.Fatalf("%v: the compiler printed no assembly", port)
		}
		for _, m := range fused.FindAllSubmatch(listing, -1) {
			t.Errorf("%v: %s at %s: write float32(x*y) + z", port, m[2], m[1])
		}
	}
}

// TestAssemblyIsFusedInProductsOnly: the formulas of math.go are over float64 and would hardly show a fused operation.
func TestAssemblyIsFusedInProductsOnly(t *testing.T) {
	files, err := filepath.Glob("*_amd64.s")
	if err != nil || len(files) < 4 {
		t.Fatalf("assembly: %v, %v", files, err)
	}
	fused := regexp.MustCompile(`VFN?M(ADD|SUB)\w*`)
	for _, name := range files {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found := fused.Find(source)
		if product := strings.HasPrefix(name, "matmul"); product != (found != nil) {
			t.Errorf("%s has %q", name, found)
		}
	}
}
