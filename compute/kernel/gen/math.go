package main

import (
	"fmt"
	"io"
	"math"
	"math/big"
)

// constants are the numbers of math_amd64.s, each in memory four times.
type constants struct {
	values []uint64
	offset map[uint64]int
}

// bits returns the operand that holds four copies of x.
func (c *constants) bits(x uint64) string {
	if _, ok := c.offset[x]; !ok {
		c.offset[x] = 32 * len(c.values)
		c.values = append(c.values, x)
	}
	return fmt.Sprintf("mathConstants<>+%d(SB)", c.offset[x])
}

func (c *constants) double(x float64) string { return c.bits(math.Float64bits(x)) }

// single returns the operand that holds eight copies of the float32 with bits x.
func (c *constants) single(x uint32) string { return c.bits(uint64(x)<<32 | uint64(x)) }

func (c *constants) write(w io.Writer) {
	fmt.Fprintf(w, "\n")
	for i, x := range c.values {
		for lane := range 4 {
			fmt.Fprintf(w, "DATA mathConstants<>+%d(SB)/8, $%#016x\n", 32*i+8*lane, x)
		}
	}
	fmt.Fprintf(w, "GLOBL mathConstants<>(SB), RODATA|NOPTR, $%d\n", 32*len(c.values))
}

// fraction is n/d rounded to float64.
func fraction(n, d int64) float64 {
	f, _ := new(big.Rat).SetFrac64(n, d).Float64()
	return f
}

// vectorMath writes the loops of math_amd64.s: the formulas of detmath, operation by operation, on two registers of
// float64 at a time.
type vectorMath struct {
	vector
	*constants
}

const registers = 7 // of each half

// register returns the i-th register of a half.
func (v vectorMath) register(half, i int) string { return v.r(half*registers + i) }

// The arguments, and the arguments after clamping; also half of them.
func (v vectorMath) inputs() string      { return v.r(v.last() - 1) }
func (v vectorMath) working() string     { return v.r(v.last()) }
func (v vectorMath) halfWorking() string { return v.half(v.last()) }

// last is the number of registers less one.
func (v vectorMath) last() int {
	if v.wide {
		return 31
	}
	return 15
}

// load fills a register with a constant.
func (v vectorMath) load(constant, to string, double bool) {
	name := "VBROADCASTSS"
	if double {
		name = "VBROADCASTSD"
	}
	v.line("%s %s, %s", v.either(name, "VMOVUPS"), constant, to)
}

// linear writes to = a + x*b.
func (v vectorMath) linear(to, x string, a, b float64) {
	v.op("VMULPD", v.double(b), x, to)
	v.op("VADDPD", v.double(a), to, to)
}

// expm1 writes func expm1 of one half: argument in register 0; result y in register 4, scale in register 1.
func (v vectorMath) expm1(half int) {
	r := func(i int) string { return v.register(half, i) }
	x, scale, x2, x4, lo, hi, t := r(0), r(1), r(2), r(3), r(4), r(5), r(6)
	magic := v.double(0x1.8p52)
	v.op("VMULPD", v.double(0x1.71547652b82fep+00), x, scale)
	v.op("VADDPD", magic, scale, scale)
	v.op("VSUBPD", magic, scale, t)
	v.op("VPADDQ", v.bits(1023), scale, scale) // the low bits of the sum are those of n
	v.op("VPSLLQ", "$52", scale, scale)
	v.op("VMULPD", v.double(0x1.62e42fefa39efp-01), t, t)
	v.op("VSUBPD", t, x, x)
	v.op("VMULPD", x, x, x2)
	v.op("VMULPD", x2, x2, x4)
	v.linear(lo, x, 1, fraction(1, 2))
	v.linear(t, x, fraction(1, 6), fraction(1, 24))
	v.op("VMULPD", x2, t, t)
	v.op("VADDPD", t, lo, lo)
	v.linear(hi, x, fraction(1, 120), fraction(1, 720))
	v.linear(t, x, fraction(1, 5040), fraction(1, 40320))
	v.op("VMULPD", x2, t, t)
	v.op("VADDPD", t, hi, hi)
	v.linear(t, x, fraction(1, 362880), fraction(1, 3628800))
	v.op("VMULPD", x4, t, t)
	v.op("VADDPD", t, hi, hi)
	v.op("VMULPD", x4, hi, hi)
	v.op("VADDPD", hi, lo, lo)
	v.op("VMULPD", x, lo, lo)
}

// log writes the part of func Log for positive arguments, of one half: argument and result in register 0.
func (v vectorMath) log(half int) {
	const sqrtHalf, mantissa = 0x3fe6a09e667f3bcd, 1<<52 - 1
	r := func(i int) string { return v.register(half, i) }
	x, n, s, z, z2, q, t := r(0), r(1), r(2), r(3), r(4), r(5), r(6)
	v.op("VPADDQ", v.bits(0x3ff0000000000000-sqrtHalf), x, x)
	v.op("VPSRLQ", "$52", x, n)
	v.op(v.either("VPORQ", "VPOR"), v.double(0x1p52), n, n) // 2^52 + n
	v.op("VSUBPD", v.double(0x1p52+1023), n, n)
	v.op(v.either("VPANDQ", "VPAND"), v.bits(mantissa), x, x)
	v.op("VPADDQ", v.bits(sqrtHalf), x, x)
	v.op("VSUBPD", v.double(1), x, x)
	v.op("VADDPD", v.double(2), x, t)
	v.op("VDIVPD", t, x, s)
	v.op("VMULPD", s, s, z)
	v.op("VMULPD", z, z, z2)
	v.linear(q, z, fraction(2, 13), fraction(2, 15))
	for _, c := range []int64{9, 5, 1} {
		v.linear(t, z, fraction(2, c), fraction(2, c+2))
		v.op("VMULPD", z2, q, q)
		v.op("VADDPD", q, t, q)
	}
	v.op("VMULPD", v.double(0x1.62e42fefa39efp-01), n, n)
	v.op("VMULPD", s, q, q)
	v.op("VADDPD", q, n, x)
}

// choose writes working = the float32 with bits x where a comparison of the inputs with y holds. It works with
// registers 0 and 1.
func (v vectorMath) choose(predicate int, y string, x uint32) {
	if v.wide {
		v.line("VCMPPS $%#x, %s, %s, K1", predicate, y, v.inputs())
		v.line("VBROADCASTSS %s, K1, %s", v.single(x), v.working())
		return
	}
	v.line("VCMPPS $%#x, %s, %s, Y0", predicate, y, v.inputs())
	v.line("VMOVUPS %s, Y1", v.single(x))
	v.line("VBLENDVPS Y0, Y1, %s, %s", v.working(), v.working())
}

// clamp writes working = max(low, min(high, from)), NaN where from is.
func (v vectorMath) clamp(from string, low, high float32) {
	v.load(v.single(math.Float32bits(high)), v.r(0), false)
	v.op("VMINPS", from, v.r(0), v.working())
	v.load(v.single(math.Float32bits(low)), v.r(0), false)
	v.op("VMAXPS", v.working(), v.r(0), v.working())
}

// A formula is one function of float32. before turns inputs into working; half turns the float64 of one half, in
// register 0, into results there; finish works on the results in working.
type formula struct {
	name   string
	before func(v vectorMath)
	half   func(v vectorMath, half int)
	finish func(v vectorMath)
}

func (f formula) step(v vectorMath) {
	v.op("VMOVUPS", "(SI)", v.inputs())
	f.before(v)
	v.op("VCVTPS2PD", v.halfWorking(), v.register(0, 0))
	v.op(v.either("VEXTRACTF64X4", "VEXTRACTF128"), "$1", v.working(), v.halfWorking())
	v.op("VCVTPS2PD", v.halfWorking(), v.register(1, 0))
	for half := range 2 {
		f.half(v, half)
	}
	narrow := v.either("VCVTPD2PS", "VCVTPD2PSY")
	v.op(narrow, v.register(0, 0), v.halfWorking())
	v.op(narrow, v.register(1, 0), v.half(registers))
	v.op(v.either("VINSERTF64X4", "VINSERTF128"), "$1", v.half(registers), v.working(), v.working())
	f.finish(v)
	v.choose(3, v.inputs(), 0x7fc00000) // unordered: NaN
	v.op("VMOVUPS", v.working(), "(DI)")
}

// write writes a function over n elements, a multiple of 8.
func (f formula) write(a assembler, c *constants) {
	fmt.Fprintf(a.w, "\n// func %s(dst, src *float32, n int, path Path)\nTEXT ·%s(SB), NOSPLIT, $0-25\n", f.name, f.name)
	a.line("MOVQ dst+0(FP), DI")
	a.line("MOVQ src+8(FP), SI")
	a.line("MOVQ n+16(FP), CX")
	a.line("CMPB path+24(FP), $%d", pathAVX512)
	a.line("JNE narrow")
	for _, v := range both(a) {
		label := v.either("wide", "narrow")
		a.label(label)
		a.line("CMPQ CX, $%d", v.elements())
		a.line("JLT %s", v.either("narrow", "done"))
		f.step(vectorMath{v, c})
		a.line("ADDQ $%d, SI", v.bytes())
		a.line("ADDQ $%d, DI", v.bytes())
		a.line("SUBQ $%d, CX", v.elements())
		a.line("JMP %s", label)
	}
	a.label("done")
	a.line("VZEROUPPER")
	a.line("RET")
}

// expScaled writes register 0 = scale*y + scale, that is exp of the argument of expm1.
func (v vectorMath) expScaled(half int) {
	v.expm1(half)
	result, scale, y := v.register(half, 0), v.register(half, 1), v.register(half, 4)
	v.op("VMULPD", y, scale, result)
	v.op("VADDPD", scale, result, result)
}

var formulas = []formula{
	{
		"expVector",
		func(v vectorMath) { v.clamp(v.inputs(), -110, 100) },
		vectorMath.expScaled,
		func(v vectorMath) {},
	},
	{
		"logisticVector",
		func(v vectorMath) {
			v.load(v.single(0x80000000), v.working(), false)
			v.op("VXORPS", v.inputs(), v.working(), v.working())
			v.clamp(v.working(), -110, 110)
		},
		func(v vectorMath, half int) {
			v.expScaled(half)
			result, one := v.register(half, 0), v.register(half, 1)
			v.op("VADDPD", v.double(1), result, result)
			v.load(v.double(1), one, true)
			v.op("VDIVPD", result, one, result)
		},
		func(v vectorMath) {},
	},
	{
		"tanhVector",
		func(v vectorMath) {
			v.load(v.single(0x7fffffff), v.working(), false)
			v.op("VANDPS", v.inputs(), v.working(), v.working())
			v.clamp(v.working(), 0, 10)
			v.op("VADDPS", v.working(), v.working(), v.working())
		},
		func(v vectorMath, half int) {
			v.expm1(half)
			result, scale, y, t := v.register(half, 0), v.register(half, 1), v.register(half, 4), v.register(half, 6)
			v.op("VMULPD", y, scale, result)
			v.op("VSUBPD", v.double(1), scale, t)
			v.op("VADDPD", t, result, result)
			v.op("VADDPD", v.double(2), result, t)
			v.op("VDIVPD", t, result, result)
		},
		func(v vectorMath) {
			v.op("VANDPS", v.single(0x80000000), v.inputs(), v.r(0))
			v.op("VORPS", v.r(0), v.working(), v.working())
		},
	},
	{
		"logVector",
		func(v vectorMath) { v.op("VMOVUPS", v.inputs(), v.working()) },
		vectorMath.log,
		func(v vectorMath) {
			const nan, infinity, equal, notGreaterOrEqual = 0x7fc00000, 0x7f800000, 0, 0x19
			v.load(v.single(infinity), v.r(2), false)
			v.choose(equal, v.r(2), infinity)
			v.op(v.either("VPXORD", "VPXOR"), v.r(2), v.r(2), v.r(2))
			v.choose(equal, v.r(2), 1<<31|infinity)
			v.choose(notGreaterOrEqual, v.r(2), nan)
		},
	},
	{
		"rsqrtVector",
		func(v vectorMath) { v.op("VMOVUPS", v.inputs(), v.working()) },
		func(v vectorMath, half int) {
			x, one := v.register(half, 0), v.register(half, 1)
			v.op("VSQRTPD", x, x)
			v.load(v.double(1), one, true)
			v.op("VDIVPD", x, one, x)
		},
		func(v vectorMath) {
			v.op(v.either("VPXORD", "VPXOR"), v.r(2), v.r(2), v.r(2))
			v.choose(0x11, v.r(2), 0x7fc00000) // less
		},
	},
}

func writeMath(w io.Writer) {
	c := &constants{offset: map[uint64]int{}}
	fmt.Fprintf(w, "#include \"textflag.h\"\n")
	for _, f := range formulas {
		f.write(assembler{w}, c)
	}
	c.write(w)
}
