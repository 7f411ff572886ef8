package main

import (
	"fmt"
	"io"
)

// writeRow writes the kernels of products of one row. They wait for memory, so that wider vectors would gain nothing.
func writeRow(w io.Writer) {
	fmt.Fprint(w, "#include \"textflag.h\"\n")
	writeAddRows4(w)
	writeColumns16(w)
}

// The registers of addRows4.
//
//	DI sum   SI, R9, R10, R11 four rows of B   CX columns left   Y8..Y11 four elements of A   Y0..Y3 sums
func writeAddRows4(w io.Writer) {
	a := assembler{w}
	fmt.Fprint(w, "\n// func addRows4(sum, a, b *float32, bRow, n int)\nTEXT ·addRows4(SB), NOSPLIT, $0-40\n")
	for i, argument := range []string{"sum", "a", "b", "bRow", "n"} {
		a.line("MOVQ %s+%d(FP), %s", argument, i*8, []string{"DI", "AX", "SI", "R8", "CX"}[i])
	}
	rows := []string{"SI", "R9", "R10", "R11"}
	for i, row := range rows {
		a.line("VBROADCASTSS %d(AX), Y%d", i*4, 8+i)
		if i > 0 {
			a.line("LEAQ (%s)(R8*1), %s", rows[i-1], row)
		}
	}
	a.label("rowsNext")
	for v := range 2 {
		a.line("VMOVUPS %d(DI), Y%d", v*32, v)
	}
	for i, row := range rows {
		for v := range 2 {
			a.line("VFMADD231PS %d(%s), Y%d, Y%d", v*32, row, 8+i, v)
		}
	}
	for v := range 2 {
		a.line("VMOVUPS Y%d, %d(DI)", v, v*32)
	}
	for _, pointer := range append(rows, "DI") {
		a.line("ADDQ $64, %s", pointer)
	}
	a.line("SUBQ $16, CX")
	a.line("JNZ rowsNext")
	a.line("VZEROUPPER")
	a.line("RET")
}

// The registers of columns16. Blocks of 4 elements of 8 columns are transposed, the columns 0..3 in the low halves.
//
//	DI A   SI, R10, R11, R12 columns 0, 4, 8 and 12   R8 stride, R9 three of it   CX elements left
//	Y14, Y15 the sums   Y10..Y13 four elements of A   Y0..Y7 a block
func writeColumns16(w io.Writer) {
	a := assembler{w}
	fmt.Fprint(w, "\n// func columns16(sum, a, b *float32, stride, k int)\nTEXT ·columns16(SB), NOSPLIT, $0-40\n")
	for i, argument := range []string{"sum", "a", "b", "stride", "k"} {
		a.line("MOVQ %s+%d(FP), %s", argument, i*8, []string{"DX", "DI", "SI", "R8", "CX"}[i])
	}
	a.line("LEAQ (R8)(R8*2), R9")
	bases := []string{"SI", "R10", "R11", "R12"}
	for i := 1; i < 4; i++ {
		a.line("LEAQ (%s)(R8*4), %s", bases[i-1], bases[i])
	}
	a.line("VXORPS Y14, Y14, Y14")
	a.line("VXORPS Y15, Y15, Y15")
	a.label("columnsNext")
	for i := range 4 {
		a.line("VBROADCASTSS %d(DI), Y%d", i*4, 10+i)
	}
	for group := range 2 {
		low, high := bases[2*group], bases[2*group+1]
		for i, at := range []string{"(%s)", "(%s)(R8*1)", "(%s)(R8*2)", "(%s)(R9*1)"} {
			a.line("VMOVUPS "+at+", X%d", low, i)
			a.line("VINSERTF128 $1, "+at+", Y%d, Y%d", high, i, i)
		}
		for i := 0; i < 4; i += 2 { // pairs of columns: elements 0 and 1, elements 2 and 3
			a.line("VUNPCKLPS Y%d, Y%d, Y%d", i+1, i, 4+i)
			a.line("VUNPCKHPS Y%d, Y%d, Y%d", i+1, i, 5+i)
		}
		for i := range 2 {
			a.line("VSHUFPS $0x44, Y%d, Y%d, Y%d", 6+i, 4+i, 2*i)
			a.line("VSHUFPS $0xee, Y%d, Y%d, Y%d", 6+i, 4+i, 2*i+1)
		}
		for i := range 4 {
			a.line("VFMADD231PS Y%d, Y%d, Y%d", i, 10+i, 14+group)
		}
	}
	a.line("ADDQ $16, DI")
	for _, base := range bases {
		a.line("PREFETCHT0 512(%s)", base)
		a.line("ADDQ $16, %s", base)
	}
	a.line("SUBQ $4, CX")
	a.line("JNZ columnsNext")
	a.line("VMOVUPS Y14, (DX)")
	a.line("VMOVUPS Y15, 32(DX)")
	a.line("VZEROUPPER")
	a.line("RET")
}
