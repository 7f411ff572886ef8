package kernel_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"hash"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/kernel/kerneltest"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/philox"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files of testdata instead of comparing with them")

// golden compares got with the file testdata/name, or writes it there when the test runs with -rewrite.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *rewrite {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: the bits changed: that is a new Version.\ngot:\n%swant:\n%s", file, got, want)
	}
}

// unary are the functions of float32 of a version, in the order of the golden file.
func unary(s *elementary.Scalars) []scalar {
	return []scalar{
		{"exp", s.Exp}, {"log", s.Log}, {"tanh", s.Tanh}, {"logistic", s.Logistic}, {"erf", s.Erf}, {"sin", s.Sin},
		{"cos", s.Cos}, {"sqrt", sqrt}, {"rsqrt", s.Rsqrt},
	}
}

type scalar struct {
	name string
	f    func(float32) float32
}

// sqrt is SqrtTo of one element, with one bit pattern for what is not a number.
func sqrt(x float32) float32 {
	y := []float32{x}
	kernel.SqrtTo(y, y)
	return canonical(y[0])
}

func canonical(x float32) float32 {
	if x != x {
		return math.Float32frombits(0x7fc00000)
	}
	return x
}

// table is a golden file while it is made: the digests of the results of functions, by name.
type table struct{ bytes.Buffer }

func (l *table) line(name string, fill func(put func(uint64))) {
	h := sha256.New()
	fill(func(u uint64) { write64(h, u) })
	fmt.Fprintf(l, "%-12s %x\n", name, h.Sum(nil))
}

// scalars adds the lines of the functions of a version.
func (l *table) scalars(version uint32) {
	s := elementary.Math{Version: version}.Scalars()
	for _, u := range unary(s) {
		l.line(u.name, func(put func(uint64)) {
			kerneltest.Sweep(func(x float32) { put(uint64(math.Float32bits(u.f(x)))) })
		})
	}
	l.line("pow", func(put func(uint64)) {
		for i := range uint64(1 << 18) {
			w := philox.Block(1, 0, i)
			put(uint64(math.Float32bits(s.Pow(math.Float32frombits(w[0]), math.Float32frombits(w[1])))))
			put(uint64(math.Float32bits(s.Pow(float32(w[2])*0x1p-30, float32(int32(w[3]))*0x1p-26))))
		}
	})
}

// TestMathGolden2 holds the bits of the functions of version 2, on every port.
func TestMathGolden2(t *testing.T) {
	var lines table
	lines.scalars(kernel.Version2)
	for _, a := range []struct {
		name string
		f    func(dst, x, d []float32)
	}{
		{"gelu", func(dst, x, _ []float32) { elementary.Math{Version: kernel.Version2}.Gelu(dst, x) }},
		{"geluGrad", elementary.Math{Version: kernel.Version2}.GeluGrad},
		{"silu", func(dst, x, _ []float32) { elementary.Math{Version: kernel.Version2}.Silu(dst, x) }},
		{"siluGrad", elementary.Math{Version: kernel.Version2}.SiluGrad},
	} {
		lines.line(a.name, func(put func(uint64)) {
			var x []float32
			kerneltest.Sweep(func(v float32) { x = append(x, v) })
			d := make([]float32, len(x))
			philox.NormalTo(d, 5, 0)
			a.f(x, x, d)
			for _, v := range x {
				put(uint64(math.Float32bits(canonical(v))))
			}
		})
	}
	golden(t, "math2.golden", lines.Bytes())
}

// TestMathGolden holds the bits of every function to those of version 1, on every port.
func TestMathGolden(t *testing.T) {
	var lines table
	lines.scalars(kernel.Version1)
	line := lines.line
	for _, f := range []struct {
		name string
		f    func(float64) float64
	}{{"exp64", detmath.Exp64}, {"log64", detmath.Log64}, {"sin64", detmath.Sin64}, {"cos64", detmath.Cos64}} {
		line(f.name, func(put func(uint64)) {
			for i := range uint64(1 << 18) {
				w := philox.Block(2, 0, i)
				put(math.Float64bits(f.f(math.Float64frombits(uint64(w[0])<<32 | uint64(w[1])))))
				put(math.Float64bits(f.f(float64(int32(w[2])) * 0x1p-22)))
			}
		})
	}
	line("normal", func(put func(uint64)) {
		dst := make([]float32, 1<<18)
		philox.NormalTo(dst, 7, 3)
		for _, x := range dst {
			put(uint64(math.Float32bits(x)))
		}
	})
	line("fma32", func(put func(uint64)) {
		for i := range uint64(1 << 18) {
			a, b, c := kerneltest.FMAOperands(philox.Block(3, 0, i))
			put(uint64(math.Float32bits(canonical(matmul.FMA32(a, b, c)))))
		}
	})
	golden(t, "math.golden", lines.Bytes())
}

// TestGemmGolden holds the bits of products to those of version 1, on every port.
func TestGemmGolden(t *testing.T) {
	var lines bytes.Buffer
	for _, s := range [][3]int{{1, 1, 600}, {7, 19, 33}, {40, 50, 1300}, {100, 17, 512}} {
		g := matmul.Gemm{M: s[0], N: s[1], K: s[2], ARow: s[2], ACol: 1, BRow: 1, BCol: s[2], CRow: s[1]}
		g.A, g.B, g.C = make([]float32, s[0]*s[2]), make([]float32, s[1]*s[2]), make([]float32, s[0]*s[1])
		philox.NormalTo(g.A, 4, 0)
		philox.NormalTo(g.B, 4, 1)
		g.Run(2)
		h := sha256.New()
		for _, x := range g.C {
			write64(h, uint64(math.Float32bits(x)))
		}
		fmt.Fprintf(&lines, "%d x %d x %d %x\n", g.M, g.K, g.N, h.Sum(nil))
	}
	golden(t, "matmul.golden", lines.Bytes())
}

func write64(h hash.Hash, u uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], u)
	h.Write(b[:])
}
