package main

import "fmt"

// The registers of sumExact.
//
//	R0 the sums   R1, R5, R6, R7 four rows of A   V0..V3 four elements of k of each row    V16..V31 sums, four a row
//	R2 B          R3 aRow   R4 turns left         V4..V7 two elements of k of the lanes    V8..V11 each of the two
func writeNEON(a assembler) {
	fmt.Fprint(a.w, "\n// func sumExact(sums *[64]int32, a, b unsafe.Pointer, aRow, turns int)\n"+
		"TEXT ·sumExact(SB), NOSPLIT, $0-40\n")
	for i, name := range []string{"sums", "a", "b", "aRow", "turns"} {
		a.line("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
	a.line("ADD R3, R1, R5")
	a.line("ADD R3, R5, R6")
	a.line("ADD R3, R6, R7")
	for v := 16; v < 32; v++ {
		a.line("VEOR V%d.B16, V%[1]d.B16, V%[1]d.B16", v)
	}
	a.label("turn")
	for i, row := range []int{1, 5, 6, 7} {
		a.line("VLD1.P 8(R%d), [V%d.H4]", row, i)
	}
	for pair := range 2 {
		a.line("VLD1.P 64(R2), [V4.H8, V5.H8, V6.H8, V7.H8]")
		for half := range 2 {
			a.line("VUZP1 V%d.H8, V%d.H8, V%d.H8", 5+2*half, 4+2*half, 8+2*half)
			a.line("VUZP2 V%d.H8, V%d.H8, V%d.H8", 5+2*half, 4+2*half, 9+2*half)
		}
		for element := range 2 {
			for i := range exactRows {
				for half := range 2 {
					sum := 16 + 4*i + 2*half
					multiplyAdd(a, false, sum, 8+2*half+element, i, 2*pair+element)
					multiplyAdd(a, true, sum+1, 8+2*half+element, i, 2*pair+element)
				}
			}
		}
	}
	a.line("SUBS $1, R4, R4")
	a.line("BNE turn")
	for i := range exactRows {
		v := 16 + 4*i
		a.line("VST1.P [V%d.S4, V%d.S4, V%d.S4, V%d.S4], 64(R0)", v, v+1, v+2, v+3)
	}
	a.line("RET")
}

// multiplyAdd is SMLAL, or SMLAL2 for the upper elements of x, which the assembler of Go does not know: sum.4S +=
// x.4H * y.H[element], with y below 16 and element below 4.
func multiplyAdd(a assembler, upper bool, sum, x, y, element int) {
	word := 0x0f402000 | element>>1<<21 | element&1<<20 | y<<16 | x<<5 | sum
	name := "SMLAL"
	if upper {
		word |= 1 << 30
		name = "SMLAL2"
	}
	a.line("WORD $0x%08x // %s V%d.H[%d], V%d, V%d", word, name, y, element, x, sum)
}
