package main

import (
	"fmt"
	"io"
)

// at is memory at a byte from a register.
func at(offset int, register string) string { return fmt.Sprintf("%d(%s)", offset, register) }

func writeElementwise(w io.Writer) {
	a := assembler{w}
	fmt.Fprintf(w, "#include \"textflag.h\"\n")
	for _, f := range [][2]string{{"add", "VADDPS"}, {"sub", "VSUBPS"}, {"mul", "VMULPS"}, {"div", "VDIVPS"}} {
		a.loops(f[0]+"Vector", []string{"dst", "x", "y"}, nil, 4, func(v vector, i int) {
			r := v.r(i / v.bytes())
			v.op("VMOVUPS", at(i, "SI"), r)
			v.op(f[1], at(i, "DX"), r, r)
			v.op("VMOVUPS", r, at(i, "DI"))
		})
	}
	for _, f := range [][2]string{{"maxVector", "MAX"}, {"minVector", "MIN"}} {
		a.loops(f[0], []string{"dst", "x", "y"}, nil, 1, func(v vector, i int) {
			v.op("VMOVUPS", at(i, "SI"), v.r(0))
			v.op("VMOVUPS", at(i, "DX"), v.r(1))
			v.extremum(f[1], v.r(0), v.r(1), v.r(2), v.r(3))
			v.op("VMOVUPS", v.r(2), at(i, "DI"))
		})
	}
	a.loops("sqrtVector", []string{"dst", "x"}, nil, 1, func(v vector, i int) {
		v.op("VSQRTPS", at(i, "SI"), v.r(0))
		v.op("VMOVUPS", v.r(0), at(i, "DI"))
	})
	writeAdam(a)
	writeLanes(a, "sumVector", func(v vector, i int, memory string) { v.op("VADDPS", memory, v.r(i), v.r(i)) })
	writeLanes(a, "largestVector", func(v vector, i int, memory string) {
		x, larger, t := v.r(2+3*i), v.r(3+3*i), v.r(4+3*i)
		v.op("VMOVUPS", memory, x)
		v.extremum("MAX", v.r(i), x, larger, t)
		v.op("VMOVUPS", larger, v.r(i))
	})
}

// writeAdam writes the formulas of adam.go, operation by operation.
func writeAdam(a assembler) {
	a.loops("adamMVector", []string{"dst", "m", "grad"}, []string{"scale", "beta", "rest"}, 2, func(v vector, i int) {
		r, s := v.r(i/v.bytes()*2), v.r(i/v.bytes()*2+1)
		scale, beta, rest := v.r(15), v.r(14), v.r(13)
		v.op("VMULPS", at(i, "DX"), scale, r)
		v.op("VMULPS", r, rest, r)
		v.op("VMULPS", at(i, "SI"), beta, s)
		v.op("VADDPS", r, s, s)
		v.op("VMOVUPS", s, at(i, "DI"))
	})
	a.loops("adamVVector", []string{"dst", "v", "grad"}, []string{"scale", "beta", "rest"}, 2, func(v vector, i int) {
		r, s := v.r(i/v.bytes()*2), v.r(i/v.bytes()*2+1)
		scale, beta, rest := v.r(15), v.r(14), v.r(13)
		v.op("VMULPS", at(i, "DX"), scale, r)
		v.op("VMULPS", r, r, r)
		v.op("VMULPS", r, rest, r)
		v.op("VMULPS", at(i, "SI"), beta, s)
		v.op("VADDPS", r, s, s)
		v.op("VMOVUPS", s, at(i, "DI"))
	})
	a.loops("adamPVector", []string{"dst", "p", "m", "v"}, []string{"lr", "c1", "c2", "eps", "decay"}, 1,
		func(v vector, i int) {
			root, step, p, t := v.r(0), v.r(1), v.r(2), v.r(3)
			lr, c1, c2, eps, decay := v.r(15), v.r(14), v.r(13), v.r(12), v.r(11)
			v.op("VMULPS", at(i, "R8"), c2, root)
			v.op("VSQRTPS", root, root)
			v.op("VADDPS", eps, root, root)
			v.op("VMULPS", at(i, "DX"), c1, step)
			v.op("VDIVPS", root, step, step)
			v.op("VMOVUPS", at(i, "SI"), p)
			v.op("VMULPS", p, decay, t)
			v.op("VADDPS", t, step, step)
			v.op("VMULPS", step, lr, step)
			v.op("VSUBPS", step, p, p)
			v.op("VMOVUPS", p, at(i, "DI"))
		})
}

// extremum writes the larger (MAX) or smaller (MIN) of x and y to dst. VMAXPS returns its second operand if one is NaN
// or both are zeros. The larger of both orders, and-ed, has the sign of +0 if one zero has it; where an operand is NaN,
// all bits are set. VMINPS likewise, with or. t is a register to work with.
func (v vector) extremum(name, x, y, dst, t string) {
	v.op("V"+name+"PS", y, x, dst)
	v.op("V"+name+"PS", x, y, t)
	v.op(map[string]string{"MAX": "VANDPS", "MIN": "VORPS"}[name], dst, t, dst)
	v.ones(3, x, y, t, dst) // unordered
}

// writeLanes writes functions that combine the elements i, i+16, ... with lane i of acc, for n a multiple of 16. The
// lanes are one register or two; combine writes the next element, in memory, into one of them.
func writeLanes(a assembler, name string, combine func(v vector, i int, memory string)) {
	fmt.Fprintf(a.w, "\n// func %s(acc, x *float32, n int, path Path)\nTEXT ·%s(SB), NOSPLIT, $0-25\n", name, name)
	a.line("MOVQ acc+0(FP), DI")
	a.line("MOVQ x+8(FP), SI")
	a.line("MOVQ n+16(FP), CX")
	a.line("CMPB path+24(FP), $%d", pathAVX512)
	a.line("JNE narrow")
	for _, v := range both(a) {
		label := v.either("wide", "narrow")
		a.label(label)
		for i := 0; i < 64; i += v.bytes() {
			v.op("VMOVUPS", at(i, "DI"), v.r(i/v.bytes()))
		}
		a.label(label + "Next")
		for i := 0; i < 64; i += v.bytes() {
			combine(v, i/v.bytes(), at(i, "SI"))
		}
		a.line("ADDQ $64, SI")
		a.line("SUBQ $16, CX")
		a.line("JNZ %sNext", label)
		for i := 0; i < 64; i += v.bytes() {
			v.op("VMOVUPS", v.r(i/v.bytes()), at(i, "DI"))
		}
		a.line("VZEROUPPER")
		a.line("RET")
	}
}
