package main

import (
	"fmt"
	"io"
	"math"
	"math/big"
)

// vectorMath writes the loops of math_amd64.s: the formulas of math.go, operation by operation, on two vectors of 4
// float64 at a time.
type vectorMath struct {
	assembler
	constants []uint64
	offset    map[uint64]int
}

// constant returns the operand that holds four copies of x.
func (v *vectorMath) constant(x uint64) string {
	if _, ok := v.offset[x]; !ok {
		v.offset[x] = 32 * len(v.constants)
		v.constants = append(v.constants, x)
	}
	return fmt.Sprintf("mathConstants<>+%d(SB)", v.offset[x])
}

func (v *vectorMath) double(x float64) string { return v.constant(math.Float64bits(x)) }

// single returns the operand that holds eight copies of the float32 with bits x.
func (v *vectorMath) single(x uint32) string { return v.constant(uint64(x)<<32 | uint64(x)) }

// fraction is 1/n rounded to float64.
func fraction(n int64) float64 {
	f, _ := new(big.Rat).SetFrac64(1, n).Float64()
	return f
}

const (
	inputs    = "Y14" // the 8 arguments
	working   = "Y15" // the 8 arguments after clamping
	registers = 7     // of each half
)

// register returns the i-th register of a half.
func register(half, i int) string { return fmt.Sprintf("Y%d", half*registers+i) }

// expm1 writes func expm1 of one half: argument in register 0; result y in register 4, scale in register 1.
func (v *vectorMath) expm1(half int) {
	r := func(i int) string { return register(half, i) }
	x, scale, x2, x4, lo, hi, t := r(0), r(1), r(2), r(3), r(4), r(5), r(6)
	magic := v.double(0x1.8p52)
	v.line("VMULPD %s, %s, %s", v.double(0x1.71547652b82fep+00), x, scale)
	v.line("VADDPD %s, %s, %s", magic, scale, scale)
	v.line("VSUBPD %s, %s, %s", magic, scale, t)
	v.line("VPADDQ %s, %s, %s", v.constant(1023), scale, scale) // the low bits of the sum are those of n
	v.line("VPSLLQ $52, %s, %s", scale, scale)
	v.line("VMULPD %s, %s, %s", v.double(0x1.62e42fefa39efp-01), t, t)
	v.line("VSUBPD %s, %s, %s", t, x, x)
	v.line("VMULPD %s, %s, %s", x, x, x2)
	v.line("VMULPD %s, %s, %s", x2, x2, x4)
	linear := func(to string, a, b int64) { // 1/a + x*(1/b)
		v.line("VMULPD %s, %s, %s", v.double(fraction(b)), x, to)
		v.line("VADDPD %s, %s, %s", v.double(fraction(a)), to, to)
	}
	linear(lo, 1, 2)
	linear(t, 6, 24)
	v.line("VMULPD %s, %s, %s", x2, t, t)
	v.line("VADDPD %s, %s, %s", t, lo, lo)
	linear(hi, 120, 720)
	linear(t, 5040, 40320)
	v.line("VMULPD %s, %s, %s", x2, t, t)
	v.line("VADDPD %s, %s, %s", t, hi, hi)
	linear(t, 362880, 3628800)
	v.line("VMULPD %s, %s, %s", x4, t, t)
	v.line("VADDPD %s, %s, %s", t, hi, hi)
	v.line("VMULPD %s, %s, %s", x4, hi, hi)
	v.line("VADDPD %s, %s, %s", hi, lo, lo)
	v.line("VMULPD %s, %s, %s", x, lo, lo)
}

// loop writes a function over n/8 groups of 8 elements. before turns inputs into working; after turns the results of
// expm1 of one half into the result, in register 0; finish works on the 8 results in working.
func (v *vectorMath) loop(name string, before func(), after func(half int), finish func()) {
	fmt.Fprintf(v.w, "\n// func %s(dst, src *float32, n int)\nTEXT ·%s(SB), NOSPLIT, $0-24\n", name, name)
	v.line("MOVQ dst+0(FP), DI")
	v.line("MOVQ src+8(FP), SI")
	v.line("MOVQ n+16(FP), CX")
	v.label(name + "Next")
	v.line("VMOVUPS (SI), %s", inputs)
	before()
	v.line("VCVTPS2PD X15, %s", register(0, 0))
	v.line("VEXTRACTF128 $1, %s, X15", working)
	v.line("VCVTPS2PD X15, %s", register(1, 0))
	for half := range 2 {
		v.expm1(half)
		after(half)
	}
	v.line("VCVTPD2PSY %s, X15", register(0, 0))
	v.line("VCVTPD2PSY %s, X%d", register(1, 0), registers)
	v.line("VINSERTF128 $1, X%d, %s, %s", registers, working, working)
	finish()
	v.line("VCMPPS $3, %s, %s, Y0", inputs, inputs) // unordered: NaN
	v.line("VMOVUPS %s, Y1", v.single(0x7fc00000))
	v.line("VBLENDVPS Y0, Y1, %s, %s", working, working)
	v.line("VMOVUPS %s, (DI)", working)
	v.line("ADDQ $32, SI")
	v.line("ADDQ $32, DI")
	v.line("SUBQ $8, CX")
	v.line("JNZ %sNext", name)
	v.line("VZEROUPPER")
	v.line("RET")
}

// clamp writes working = max(low, min(high, from)), NaN where from is.
func (v *vectorMath) clamp(from string, low, high float32) {
	v.line("VMOVUPS %s, Y0", v.single(math.Float32bits(high)))
	v.line("VMINPS %s, Y0, %s", from, working)
	v.line("VMOVUPS %s, Y0", v.single(math.Float32bits(low)))
	v.line("VMAXPS %s, Y0, %s", working, working)
}

func writeMath(w io.Writer) {
	v := &vectorMath{assembler: assembler{w}, offset: map[uint64]int{}}
	fmt.Fprintf(w, "#include \"textflag.h\"\n")
	one, two := v.double(1), v.double(2)

	v.loop("expVector", func() { v.clamp(inputs, -110, 100) }, func(half int) {
		result, scale, y := register(half, 0), register(half, 1), register(half, 4)
		v.line("VMULPD %s, %s, %s", y, scale, result)
		v.line("VADDPD %s, %s, %s", scale, result, result)
	}, func() {})

	v.loop("logisticVector", func() {
		v.line("VXORPS %s, %s, %s", v.single(0x80000000), inputs, working)
		v.clamp(working, -110, 110)
	}, func(half int) {
		result, scale, y := register(half, 0), register(half, 1), register(half, 4)
		v.line("VMULPD %s, %s, %s", y, scale, result)
		v.line("VADDPD %s, %s, %s", scale, result, result)
		v.line("VADDPD %s, %s, %s", one, result, result)
		v.line("VMOVUPD %s, %s", one, scale)
		v.line("VDIVPD %s, %s, %s", result, scale, result)
	}, func() {})

	v.loop("tanhVector", func() {
		v.line("VANDPS %s, %s, %s", v.single(0x7fffffff), inputs, working)
		v.clamp(working, 0, 10)
		v.line("VADDPS %s, %s, %s", working, working, working)
	}, func(half int) {
		result, scale, y, t := register(half, 0), register(half, 1), register(half, 4), register(half, 6)
		v.line("VMULPD %s, %s, %s", y, scale, result)
		v.line("VSUBPD %s, %s, %s", one, scale, t)
		v.line("VADDPD %s, %s, %s", t, result, result)
		v.line("VADDPD %s, %s, %s", two, result, t)
		v.line("VDIVPD %s, %s, %s", t, result, result)
	}, func() {
		v.line("VANDPS %s, %s, Y0", v.single(0x80000000), inputs)
		v.line("VORPS Y0, %s, %s", working, working)
	})

	fmt.Fprintf(w, "\n")
	for i, x := range v.constants {
		for lane := range 4 {
			fmt.Fprintf(w, "DATA mathConstants<>+%d(SB)/8, $%#016x\n", 32*i+8*lane, x)
		}
	}
	fmt.Fprintf(w, "GLOBL mathConstants<>(SB), RODATA|NOPTR, $%d\n", 32*len(v.constants))
}
