package main

import (
	"fmt"
	"io"
	"math"

	"github.com/starling-network/starling/compute/kernel/gen/series"
)

// vectorSingle writes the loops of single_amd64.s: the formulas of package single, operation by operation, a register
// of elements at a time. Registers 12 to 15 are those of a formula's own.
type vectorSingle struct {
	vector
	*constants
}

func (v vectorSingle) number(x float32) string { return v.single(math.Float32bits(x)) }

// load fills a register with a constant.
func (v vectorSingle) load(constant, to string) {
	v.line("%s %s, %s", v.either("VBROADCASTSS", "VMOVUPS"), constant, to)
}

// bitwise writes an operation on all bits: "AND", "OR", "XOR", "ANDN".
func (v vectorSingle) bitwise(name, y, x, to string) { v.op("V"+name+"PS", y, x, to) }

// horner writes p = the polynomial with the given coefficients at x.
func (v vectorSingle) horner(c []float32, x, p string) {
	v.op("VMULPS", v.number(c[len(c)-1]), x, p)
	for i := len(c) - 2; i > 0; i-- {
		v.op("VADDPS", v.number(c[i]), p, p)
		v.op("VMULPS", x, p, p)
	}
	v.op("VADDPS", v.number(c[0]), p, p)
}

const (
	singleLog2E   = 0x1.715476p+00
	singleLn2High = 0x1.62e4p-01
	singleLn2Low  = 0x1.7f7d1cp-20
	singleMagic   = 0x1.8p23
)

// exp writes to = e^x for expLow <= x <= expHigh, as reduced and scaled of package single. It changes x, and works with
// registers 1 to 6, of which x and to may be one.
func (v vectorSingle) exp(x, to string) {
	n, r, p, t, d, one := v.r(1), v.r(2), v.r(3), v.r(4), v.r(5), v.r(6)
	v.op("VMULPS", v.number(singleLog2E), x, n)
	v.op("VADDPS", v.number(singleMagic), n, n)
	v.op("VSUBPS", v.number(singleMagic), n, n)
	v.op("VMULPS", v.number(singleLn2High), n, t)
	v.op("VSUBPS", t, x, r)
	v.op("VMULPS", v.number(singleLn2Low), n, t)
	v.op("VSUBPS", t, r, r)
	v.horner(series.Coefficients("expRest"), r, p)
	v.op("VMULPS", r, r, t)
	v.op("VMULPS", p, t, p)
	v.load(v.number(1), one)
	v.op("VADDPS", r, one, t)
	v.op("VSUBPS", t, one, d)
	v.op("VADDPS", r, d, d)
	v.op("VADDPS", p, d, d)
	v.op("VADDPS", d, t, to)
	if v.wide {
		v.op("VSCALEFPS", n, to, to)
		return
	}
	v.op("VCVTPS2DQ", n, n)
	v.op("VPSRAD", "$1", n, t)
	v.op("VPSUBD", t, n, n)
	for _, half := range []string{t, n} {
		v.op("VPADDD", v.single(127), half, half)
		v.op("VPSLLD", "$23", half, half)
		v.op("VMULPS", half, to, to)
	}
}

// choose writes to = from where a comparison of x with y holds. t is a register to work with.
func (v vectorSingle) choose(predicate int, x, y, from, t, to string) {
	if v.wide {
		v.line("VCMPPS $%#x, %s, %s, K1", predicate, y, x)
		v.line("VMOVAPS %s, K1, %s", from, to)
		return
	}
	v.line("VCMPPS $%#x, %s, %s, %s", predicate, y, x, t)
	v.line("VBLENDVPS %s, %s, %s, %s", t, from, to, to)
}

// chooseBits is choose from a constant; it works with registers 1 and 2.
func (v vectorSingle) chooseBits(predicate int, x, y string, bits uint32, to string) {
	v.load(v.single(bits), v.r(2))
	v.choose(predicate, x, y, v.r(2), v.r(1), to)
}

// canonical writes the NaN of package single to the register where x is one.
func (v vectorSingle) canonical(x, to string) { v.chooseBits(unordered, x, x, 0x7fc00000, to) }

// Predicates of comparisons.
const (
	equal             = 0
	less              = 1
	unordered         = 3
	notGreaterOrEqual = 0x19
	greater           = 0x1e
)

// logistic writes to = Logistic(x), any number where x is NaN. It works with registers 0 to 7.
func (v vectorSingle) logistic(x, to string) {
	e, q := v.r(0), v.r(7)
	v.load(v.single(1<<31), e)
	v.bitwise("OR", x, e, e)
	v.op("VMAXPS", v.number(-104), e, e)
	v.exp(e, e)
	v.op("VADDPS", v.number(1), e, q)
	v.op("VDIVPS", q, e, q)
	v.load(v.number(1), e)
	v.op("VSUBPS", q, e, e)
	if v.wide {
		v.op("VPXORD", v.r(1), v.r(1), v.r(1))
		v.choose(less, x, v.r(1), q, "", e)
		v.op("VMOVAPS", e, to)
		return
	}
	v.line("VBLENDVPS %s, %s, %s, %s", x, q, e, to) // by the sign: both are the same for zeros
}

// A singleFormula is one function; body writes it for the operands in registers 15, 14, ..., with its result in 13.
type singleFormula struct {
	name     string
	operands []string
	body     func(v vectorSingle)
}

// geluLogistic writes squares = x*x, and to = Logistic(x * (x*x*c + s)) for the factors c and s of gelu. It
// works with registers 0 to 8.
func (v vectorSingle) geluLogistic(x, squares, to string) {
	v.op("VMULPS", x, x, squares)
	v.op("VMULPS", v.number(geluCubic), squares, v.r(8))
	v.op("VADDPS", v.number(geluLinear), v.r(8), v.r(8))
	v.op("VMULPS", v.r(8), x, v.r(8))
	v.logistic(v.r(8), to)
}

// Factors of gelu: 2*sqrt(2/pi), and that times 0.044715, and three times that.
const (
	geluLinear = 2 * 0.7978845608028654
	geluCubic  = 0.044715 * geluLinear
	geluRise   = 3 * geluCubic
)

// grad writes 13 = d * (s * (1 + x*(1-s)*factor)), without factor if it is "".
func (v vectorSingle) grad(x, d, s, factor string) {
	rest := v.r(13)
	v.load(v.number(1), v.r(0))
	v.op("VSUBPS", s, v.r(0), rest)
	v.op("VMULPS", rest, x, rest)
	if factor != "" {
		v.op("VMULPS", factor, rest, rest)
	}
	v.op("VADDPS", v.r(0), rest, rest)
	v.op("VMULPS", s, rest, rest)
	v.op("VMULPS", d, rest, rest)
}

var singleFormulas = []singleFormula{
	{"expSingle", []string{"x"}, func(v vectorSingle) {
		x, to := v.r(15), v.r(13)
		v.op("VMINPS", v.number(89), x, to)
		v.op("VMAXPS", v.number(-104), to, to)
		v.exp(to, to)
		v.canonical(x, to)
	}},
	{"logisticSingle", []string{"x"}, func(v vectorSingle) {
		v.logistic(v.r(15), v.r(13))
		v.canonical(v.r(15), v.r(13))
	}},
	{"tanhSingle", []string{"x"}, writeTanh},
	{"logSingle", []string{"x"}, writeLog},
	{"rsqrtSingle", []string{"x"}, writeRsqrt},
	{"geluSingle", []string{"x"}, func(v vectorSingle) {
		v.geluLogistic(v.r(15), v.r(9), v.r(13))
		v.op("VMULPS", v.r(13), v.r(15), v.r(13))
	}},
	{"geluGradSingle", []string{"x", "d"}, func(v vectorSingle) {
		x, d, squares, s := v.r(15), v.r(14), v.r(9), v.r(10)
		v.geluLogistic(x, squares, s)
		v.op("VMULPS", v.number(geluRise), squares, squares)
		v.op("VADDPS", v.number(geluLinear), squares, squares)
		v.grad(x, d, s, squares)
	}},
	{"siluSingle", []string{"x"}, func(v vectorSingle) {
		v.logistic(v.r(15), v.r(13))
		v.op("VMULPS", v.r(13), v.r(15), v.r(13))
	}},
	{"siluGradSingle", []string{"x", "d"}, func(v vectorSingle) {
		v.logistic(v.r(15), v.r(10))
		v.grad(v.r(15), v.r(14), v.r(10), "")
	}},
}

func writeTanh(v vectorSingle) {
	x, a, z, near, far := v.r(15), v.r(14), v.r(12), v.r(11), v.r(13)
	v.load(v.single(0x7fffffff), a)
	v.bitwise("AND", x, a, a)
	v.op("VMULPS", a, a, z)
	v.horner(series.Coefficients("tanhRest"), z, near)
	v.op("VMULPS", a, z, z)
	v.op("VMULPS", near, z, near)
	v.op("VADDPS", near, a, near)
	v.op("VMINPS", v.number(10), a, far)
	v.op("VADDPS", far, far, far)
	v.exp(far, far)
	v.op("VADDPS", v.number(1), far, far)
	v.load(v.number(2), v.r(0))
	v.op("VDIVPS", far, v.r(0), far)
	v.load(v.number(1), v.r(0))
	v.op("VSUBPS", far, v.r(0), far)
	v.load(v.number(0.9), v.r(0))
	v.choose(less, a, v.r(0), near, v.r(1), far)
	v.load(v.single(1<<31), v.r(0))
	v.bitwise("AND", x, v.r(0), v.r(0))
	v.bitwise("OR", v.r(0), far, far)
	v.canonical(x, far)
}

func writeLog(v vectorSingle) {
	const sqrtHalf, mantissa, infinity = 0x3f3504f3, 1<<23 - 1, 0x7f800000
	x, a, n, f, z, q, t, d, to := v.r(15), v.r(14), v.r(12), v.r(11), v.r(10), v.r(9), v.r(8), v.r(7), v.r(13)
	// Subnormal numbers are multiplied by 2^23, and n begins with -23.
	v.op("VMULPS", v.number(0x1p23), x, t)
	v.op("VMOVAPS", x, a)
	v.load(v.number(0x1p-126), z)
	v.choose(less, x, z, t, v.r(1), a)
	v.bitwise("XOR", n, n, n)
	v.load(v.number(-23), t)
	v.choose(less, x, z, t, v.r(1), n)
	v.op("VPADDD", v.single(0x3f800000-sqrtHalf), a, a)
	v.op("VPSRLD", "$23", a, t)
	v.op("VPSUBD", v.single(127), t, t)
	v.op("VCVTDQ2PS", t, t)
	v.op("VADDPS", t, n, n)
	v.bitwise("AND", v.single(mantissa), a, f)
	v.op("VPADDD", v.single(sqrtHalf), f, f)
	v.op("VSUBPS", v.number(1), f, f)
	v.op("VMULPS", f, f, z)
	v.horner(series.Coefficients("logRest"), f, q)
	v.op("VMULPS", z, f, t)
	v.op("VMULPS", t, q, q)
	v.op("VMULPS", v.number(0.5), z, z)
	v.op("VSUBPS", z, q, q)
	v.op("VMULPS", v.number(singleLn2Low), n, t)
	v.op("VADDPS", t, q, q)
	v.op("VMULPS", v.number(singleLn2High), n, n)
	v.op("VADDPS", f, n, t)
	v.op("VSUBPS", t, n, d)
	v.op("VADDPS", f, d, d)
	v.op("VADDPS", q, d, d)
	v.op("VADDPS", d, t, to)
	v.load(v.single(infinity), z)
	v.chooseBits(equal, x, z, infinity, to)
	v.bitwise("XOR", z, z, z)
	v.chooseBits(equal, x, z, 1<<31|infinity, to)
	v.chooseBits(notGreaterOrEqual, x, z, 0x7fc00000, to)
}

func writeRsqrt(v vectorSingle) {
	x, scale, back, limit, t, to := v.r(15), v.r(12), v.r(11), v.r(10), v.r(9), v.r(13)
	v.load(v.number(1), scale)
	v.load(v.number(1), back)
	for _, edge := range []struct {
		predicate   int
		limit, x, y float32
	}{{greater, 0x1p64, 0x1p-64, 0x1p-32}, {less, 0x1p-64, 0x1p64, 0x1p32}} {
		v.load(v.number(edge.limit), limit)
		v.load(v.number(edge.x), t)
		v.choose(edge.predicate, x, limit, t, v.r(1), scale)
		v.load(v.number(edge.y), t)
		v.choose(edge.predicate, x, limit, t, v.r(1), back)
	}
	v.op("VMULPS", scale, x, to)
	v.load(v.number(1), t)
	v.op("VDIVPS", to, t, to)
	v.op("VSQRTPS", to, to)
	v.op("VMULPS", back, to, to)
	v.bitwise("XOR", limit, limit, limit)
	v.load(v.single(1<<31), t)
	v.bitwise("AND", x, t, t)
	v.bitwise("OR", v.single(0x7f800000), t, t)
	v.choose(equal, x, limit, t, v.r(1), to)
	v.chooseBits(less, x, limit, 0x7fc00000, to)
	v.canonical(x, to)
}

func writeMath2(w io.Writer) {
	a, c := assembler{w}, &constants{offset: map[uint64]int{}}
	fmt.Fprintf(w, "#include \"textflag.h\"\n")
	for _, f := range singleFormulas {
		a.loops(f.name, append([]string{"dst"}, f.operands...), nil, 1, func(v vector, i int) {
			s := vectorSingle{v, c}
			for k := range f.operands {
				v.op("VMOVUPS", at(i, []string{"SI", "DX"}[k]), v.r(15-k))
			}
			f.body(s)
			v.op("VMOVUPS", v.r(13), at(i, "DI"))
		})
	}
	c.write(w)
}
