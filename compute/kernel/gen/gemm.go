package main

import (
	"fmt"
	"io"
)

// assembler writes instructions in the syntax of Go.
type assembler struct{ w io.Writer }

func (a assembler) line(format string, args ...any) { fmt.Fprintf(a.w, "\t"+format+"\n", args...) }
func (a assembler) label(name string)               { fmt.Fprintf(a.w, "%s:\n", name) }
func (a assembler) comment(text string)             { fmt.Fprintf(a.w, "\n\t// %s\n", text) }

const (
	tileRows = 6
	vectors  = 2 // of 8 columns
)

// The registers of runTiles.
//
//	SI the tile in A      R8 aRow   R12 aTile    Y0..Y11 the sums, two a row
//	R9 aCol               DI B      R10 bRow     Y12, Y13 a row of B
//	DX C                  R11 cRow  BX rows left Y14, Y15 elements of A
//	CX k left             AX, R13 running A (rows 0 and 3), R15 running B
func writeGemm(w io.Writer) {
	a := assembler{w}
	fmt.Fprintf(w, "#include \"textflag.h\"\n\n// func runTiles(t *tiles)\nTEXT ·runTiles(SB), NOSPLIT, $0-8\n")
	a.line("MOVQ t+0(FP), AX")
	for i, register := range []string{"SI", "DI", "DX", "R8", "R9", "R12", "R10", "R11"} {
		a.line("MOVQ %d(AX), %s", i*8, register)
	}
	a.line("MOVQ 72(AX), BX")
	a.label("next")
	a.line("CMPQ BX, $%d", tileRows)
	a.line("JGE rows%d", tileRows)
	for rows := tileRows - 1; rows > 1; rows-- {
		a.line("CMPQ BX, $%d", rows)
		a.line("JEQ rows%d", rows)
	}
	for rows := 1; rows <= tileRows; rows++ {
		writeTile(a, rows)
	}
	a.label("done")
	a.line("VZEROUPPER")
	a.line("RET")
	writeTranspose(a)
	writeSlivers(a)
	writeCopy(a)
}

func writeTile(a assembler, rows int) {
	a.comment(fmt.Sprintf("%d rows.", rows))
	a.label(fmt.Sprintf("rows%d", rows))
	for i := range rows * vectors {
		a.line("VXORPS Y%d, Y%d, Y%d", i, i, i)
	}
	a.line("MOVQ t+0(FP), CX")
	a.line("MOVQ 64(CX), CX")
	a.line("MOVQ SI, AX")
	a.line("LEAQ (SI)(R8*2), R13")
	a.line("ADDQ R8, R13")
	a.line("MOVQ DI, R15")
	a.label(fmt.Sprintf("k%d", rows))
	a.line("VMOVUPS (R15), Y12")
	a.line("VMOVUPS 32(R15), Y13")
	a.line("PREFETCHT0 (R15)(R10*8)")
	for i := range rows {
		base := []string{"AX", "R13"}[i/3]
		a.line("VBROADCASTSS %s, Y%d", []string{"(" + base + ")", "(" + base + ")(R8*1)", "(" + base + ")(R8*2)"}[i%3],
			14+i%2)
		for v := range vectors {
			a.line("VFMADD231PS Y%d, Y%d, Y%d", 12+v, 14+i%2, i*vectors+v)
		}
	}
	a.line("ADDQ R9, AX")
	if rows > 3 {
		a.line("ADDQ R9, R13")
	}
	a.line("ADDQ R10, R15")
	a.line("DECQ CX")
	a.line("JNZ k%d", rows)

	a.line("MOVQ t+0(FP), AX")
	a.line("CMPQ 80(AX), $0")
	a.line("JEQ store%d", rows)
	a.line("MOVQ DX, AX")
	for i := range rows {
		for v := range vectors {
			a.line("VADDPS %d(AX), Y%d, Y%d", v*32, i*vectors+v, i*vectors+v)
		}
		if i < rows-1 {
			a.line("ADDQ R11, AX")
		}
	}
	a.label(fmt.Sprintf("store%d", rows))
	for i := range rows {
		for v := range vectors {
			a.line("VMOVUPS Y%d, %d(DX)", i*vectors+v, v*32)
		}
		a.line("ADDQ R11, DX")
	}
	if rows < tileRows {
		a.line("JMP done")
		return
	}
	a.line("ADDQ R12, SI")
	a.line("SUBQ $%d, BX", tileRows)
	a.line("JNZ next")
	a.line("JMP done")
}

// writeTranspose writes transpose16: blocks of 8 x 8, in three rounds of shuffles.
func writeTranspose(a assembler) {
	fmt.Fprintf(a.w, "\n// func transpose16(dst, src *float32, stride, k int)\nTEXT ·transpose16(SB), NOSPLIT, $0-32\n")
	a.line("MOVQ dst+0(FP), DI")
	a.line("MOVQ src+8(FP), SI")
	a.line("MOVQ stride+16(FP), R8")
	a.line("MOVQ k+24(FP), CX")
	a.line("LEAQ (SI)(R8*8), BX")
	a.line("LEAQ (R8)(R8*2), R9")
	a.label("transposeNext")
	for half, source := range []string{"SI", "BX"} {
		a.line("LEAQ (%s)(R8*4), AX", source)
		for i := range 8 {
			base := []string{source, "AX"}[i/4]
			a.line("VMOVUPS %s, Y%d", []string{"(" + base + ")", "(" + base + ")(R8*1)", "(" + base + ")(R8*2)",
				"(" + base + ")(R9*1)"}[i%4], i)
		}
		for i := 0; i < 8; i += 2 { // pairs of rows
			a.line("VUNPCKLPS Y%d, Y%d, Y%d", i+1, i, 8+i)
			a.line("VUNPCKHPS Y%d, Y%d, Y%d", i+1, i, 9+i)
		}
		for i := 0; i < 8; i += 4 { // quadruples
			a.line("VSHUFPS $0x44, Y%d, Y%d, Y%d", 10+i, 8+i, i)
			a.line("VSHUFPS $0xee, Y%d, Y%d, Y%d", 10+i, 8+i, i+1)
			a.line("VSHUFPS $0x44, Y%d, Y%d, Y%d", 11+i, 9+i, i+2)
			a.line("VSHUFPS $0xee, Y%d, Y%d, Y%d", 11+i, 9+i, i+3)
		}
		for i := range 4 { // halves
			a.line("VPERM2F128 $0x20, Y%d, Y%d, Y%d", i+4, i, 8+i)
			a.line("VPERM2F128 $0x31, Y%d, Y%d, Y%d", i+4, i, 12+i)
		}
		for i := range 8 {
			a.line("VMOVUPS Y%d, %d(DI)", 8+i, i*64+half*32)
		}
	}
	a.line("ADDQ $32, SI")
	a.line("ADDQ $32, BX")
	a.line("ADDQ $512, DI")
	a.line("SUBQ $8, CX")
	a.line("JNZ transposeNext")
	a.line("VZEROUPPER")
	a.line("RET")
}

// writeSlivers writes slivers6: 6 elements are a move of 4 and one of 2.
func writeSlivers(a assembler) {
	fmt.Fprintf(a.w, "\n// func slivers6(dst, src *float32, panel, stride, tiles, k int)\nTEXT ·slivers6(SB), NOSPLIT, "+
		"$0-48\n")
	for i, argument := range []string{"dst", "src", "panel", "stride", "tiles", "k"} {
		a.line("MOVQ %s+%d(FP), %s", argument, i*8, []string{"DI", "SI", "R8", "R9", "BX", "CX"}[i])
	}
	a.label("sliversNext")
	a.line("MOVQ SI, AX")
	a.line("MOVQ DI, DX")
	a.line("MOVQ BX, R10")
	a.label("sliver")
	a.line("PREFETCHT0 (AX)(R9*8)")
	a.line("VMOVUPS (AX), X0")
	a.line("VMOVSD 16(AX), X1")
	a.line("VMOVUPS X0, (DX)")
	a.line("VMOVSD X1, 16(DX)")
	a.line("ADDQ $24, AX")
	a.line("ADDQ R8, DX")
	a.line("DECQ R10")
	a.line("JNZ sliver")
	a.line("ADDQ R9, SI")
	a.line("ADDQ $24, DI")
	a.line("DECQ CX")
	a.line("JNZ sliversNext")
	a.line("RET")
}

// writeCopy writes copy16.
func writeCopy(a assembler) {
	fmt.Fprintf(a.w, "\n// func copy16(dst, src *float32, stride, k int)\nTEXT ·copy16(SB), NOSPLIT, $0-32\n")
	a.line("MOVQ dst+0(FP), DI")
	a.line("MOVQ src+8(FP), SI")
	a.line("MOVQ stride+16(FP), R8")
	a.line("MOVQ k+24(FP), CX")
	a.label("copyNext")
	a.line("PREFETCHT0 (SI)(R8*8)")
	a.line("VMOVUPS (SI), Y0")
	a.line("VMOVUPS 32(SI), Y1")
	a.line("VMOVUPS Y0, (DI)")
	a.line("VMOVUPS Y1, 32(DI)")
	a.line("ADDQ R8, SI")
	a.line("ADDQ $64, DI")
	a.line("DECQ CX")
	a.line("JNZ copyNext")
	a.line("VZEROUPPER")
	a.line("RET")
}
