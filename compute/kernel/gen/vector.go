package main

import (
	"fmt"
	"strings"
)

// A vector is one of the two widths in which loops over elements are written: 8 float32 for AVX2, 16 for AVX-512.
type vector struct {
	assembler
	wide bool
}

// both are the widths in the order in which a loop uses them: the second one takes what the first one leaves.
func both(a assembler) []vector { return []vector{{a, true}, {a, false}} }

// r is register i; half is the register half as wide.
func (v vector) r(i int) string {
	if v.wide {
		return fmt.Sprintf("Z%d", i)
	}
	return fmt.Sprintf("Y%d", i)
}

func (v vector) half(i int) string {
	if v.wide {
		return fmt.Sprintf("Y%d", i)
	}
	return fmt.Sprintf("X%d", i)
}

// elements is the number of float32 in a register.
func (v vector) elements() int {
	if v.wide {
		return 16
	}
	return 8
}

func (v vector) bytes() int { return 4 * v.elements() }

// either is the first string for AVX-512, the second one for AVX2.
func (v vector) either(wide, narrow string) string {
	if v.wide {
		return wide
	}
	return narrow
}

// op writes an instruction. An operand from the table of constants is in memory as often as AVX2 needs it; AVX-512
// repeats it itself.
func (v vector) op(name string, operands ...string) {
	if v.wide && strings.Contains(operands[0], "onstants<>") {
		name += ".BCST"
	}
	v.line("%s %s", name, strings.Join(operands, ", "))
}

// ones sets all bits of dst where a comparison of x and y with the given predicate holds, and leaves the others. t is
// a register to work with.
func (v vector) ones(predicate int, x, y, t, dst string) {
	if v.wide {
		v.line("VCMPPS $%#x, %s, %s, K1", predicate, x, y)
		v.line("VPTERNLOGD $0xff, %s, %s, K1, %s", dst, dst, dst)
		return
	}
	v.line("VCMPPS $%#x, %s, %s, %s", predicate, x, y, t)
	v.line("VORPS %s, %s, %s", t, dst, dst)
}

// pathAVX512 is the number that kernel.AVX512 has.
const pathAVX512 = 3

// loops writes a function over n elements, a multiple of 8, in memory at the pointers, which are in DI, SI, DX and R8.
// Its arguments are the pointers, n, the scalars (float32) and the path. unroll is the number of registers of a step
// where there are as many elements; body writes a step from the given byte on, with the scalars in registers 15, 14,
// ... .
func (a assembler) loops(name string, pointers, scalars []string, unroll int, body func(v vector, at int)) {
	arguments := len(pointers)*8 + 8 + len(scalars)*4
	signature := strings.Join(pointers, ", ") + " *float32, n int"
	if len(scalars) > 0 {
		signature += ", " + strings.Join(scalars, ", ") + " float32"
	}
	fmt.Fprintf(a.w, "\n// func %s(%s, path Path)\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, signature, name, arguments+1)
	registers := []string{"DI", "SI", "DX", "R8"}[:len(pointers)]
	for i, p := range pointers {
		a.line("MOVQ %s+%d(FP), %s", p, 8*i, registers[i])
	}
	a.line("MOVQ n+%d(FP), CX", 8*len(pointers))
	a.line("CMPB path+%d(FP), $%d", arguments, pathAVX512)
	a.line("JNE narrow0")
	for _, v := range both(a) {
		for level, steps := range []int{unroll, 1} {
			label := fmt.Sprintf("%s%d", v.either("wide", "narrow"), level)
			next := map[string]string{"wide0": "wide1", "wide1": "narrow0", "narrow0": "narrow1", "narrow1": "done"}[label]
			a.label(label)
			if level == 0 {
				for i, s := range scalars {
					a.line("VBROADCASTSS %s+%d(FP), %s", s, 8*len(pointers)+8+4*i, v.r(15-i))
				}
				if steps == 1 {
					continue
				}
			}
			a.label(label + "Next")
			a.line("CMPQ CX, $%d", steps*v.elements())
			a.line("JLT %s", next)
			for i := range steps {
				body(v, i*v.bytes())
			}
			for _, r := range registers {
				a.line("ADDQ $%d, %s", steps*v.bytes(), r)
			}
			a.line("SUBQ $%d, CX", steps*v.elements())
			a.line("JMP %sNext", label)
		}
	}
	a.label("done")
	a.line("VZEROUPPER")
	a.line("RET")
}
