package main

import (
	"fmt"
	"io"
)

const (
	tileRows512 = 14
	vectors512  = 2 // of 16 columns
	ahead512    = 8 // rows of B from which on they are fetched into the first-level cache
	next512     = 8 // bytes of the next panel that are fetched into the second-level cache with each row: all by 16 tiles
)

// The registers of runTiles512.
//
//	SI the tile in A      R8 aRow   R12 aTile    Z0..Z27 the sums, two a row
//	R9 aCol               DI B      R10 3*aRow   Z28, Z29 a row of B
//	DX C                  R11 next  BX rows left Z30, Z31 elements of A
//	CX k left, or cRow    AX, R13, R14 running A (rows 0, 5 and 10), R15 running B
//	K1, K2 the columns of C
func writeGemm512(w io.Writer) {
	a := assembler{w}
	fmt.Fprintf(w, "#include \"textflag.h\"\n\n// func runTiles512(t *tiles)\nTEXT ·runTiles512(SB), NOSPLIT, $0-8\n")
	a.line("MOVQ t+0(FP), AX")
	for i, register := range []string{"SI", "DI", "DX", "R8", "R9", "R12", "", "", "", "BX", "", "", "R11"} {
		if register != "" {
			a.line("MOVQ %d(AX), %s", i*8, register)
		}
	}
	a.line("MOVQ 88(AX), CX")
	a.line("KMOVW CX, K1")
	a.line("SHRQ $16, CX")
	a.line("KMOVW CX, K2")
	a.line("LEAQ (R8)(R8*2), R10")
	a.label("next")
	a.line("CMPQ BX, $%d", tileRows512)
	a.line("JGE rows%d", tileRows512)
	for rows := tileRows512 - 1; rows > 1; rows-- {
		a.line("CMPQ BX, $%d", rows)
		a.line("JEQ rows%d", rows)
	}
	for rows := 1; rows <= tileRows512; rows++ {
		writeTile512(a, rows)
	}
	a.label("done")
	a.line("VZEROUPPER")
	a.line("RET")
	writeTranspose512(a)
	writeSlivers512(a)
	writePanels512(a)
}

func writeTile512(a assembler, rows int) {
	a.comment(fmt.Sprintf("%d rows.", rows))
	a.label(fmt.Sprintf("rows%d", rows))
	for i := range rows * vectors512 {
		a.line("VPXORD Z%d, Z%d, Z%d", i, i, i)
	}
	a.line("MOVQ t+0(FP), R13")
	a.line("MOVQ 56(R13), CX")
	a.line("MOVQ DX, AX")
	for i := range rows { // C is needed last
		for v := range vectors512 {
			a.line("PREFETCHT0 %d(AX)", v*64)
		}
		if i < rows-1 {
			a.line("ADDQ CX, AX")
		}
	}
	a.line("MOVQ 64(R13), CX")
	bases := []string{"AX", "R13", "R14"}[:(rows+4)/5]
	for i, base := range bases {
		if i == 0 {
			a.line("MOVQ SI, AX")
		} else {
			a.line("LEAQ (%s)(R8*4), %s", bases[i-1], base)
			a.line("ADDQ R8, %s", base)
		}
	}
	a.line("MOVQ DI, R15")
	a.label(fmt.Sprintf("k%d", rows))
	for v := range vectors512 {
		a.line("VMOVUPS %d(R15), Z%d", v*64, 28+v)
	}
	for v := range vectors512 {
		a.line("PREFETCHT0 %d(R15)", ahead512*64*vectors512+v*64)
	}
	a.line("PREFETCHT0 (AX)(R9*%d)", ahead512)
	a.line("PREFETCHT1 (R11)")
	for i := range rows {
		a.line("VBROADCASTSS (%s)%s, Z%d", bases[i/5], []string{"", "(R8*1)", "(R8*2)", "(R10*1)", "(R8*4)"}[i%5], 30+i%2)
		for v := range vectors512 {
			a.line("VFMADD231PS Z%d, Z%d, Z%d", 28+v, 30+i%2, i*vectors512+v)
		}
	}
	for _, base := range bases {
		a.line("ADDQ R9, %s", base)
	}
	a.line("ADDQ $%d, R15", 64*vectors512)
	a.line("ADDQ $%d, R11", next512)
	a.line("DECQ CX")
	a.line("JNZ k%d", rows)

	a.line("MOVQ t+0(FP), AX")
	a.line("MOVQ 56(AX), CX")
	a.line("CMPQ 80(AX), $0")
	a.line("JEQ store%d", rows)
	a.line("MOVQ DX, AX")
	for i := range rows {
		for v := range vectors512 {
			a.line("VADDPS %d(AX), Z%d, K%d, Z%d", v*64, i*vectors512+v, v+1, i*vectors512+v)
		}
		if i < rows-1 {
			a.line("ADDQ CX, AX")
		}
	}
	a.label(fmt.Sprintf("store%d", rows))
	for i := range rows {
		for v := range vectors512 {
			a.line("VMOVUPS Z%d, K%d, %d(DX)", i*vectors512+v, v+1, v*64)
		}
		a.line("ADDQ CX, DX")
	}
	if rows < tileRows512 {
		a.line("JMP done")
		return
	}
	a.line("ADDQ R12, SI")
	a.line("SUBQ $%d, BX", tileRows512)
	a.line("JNZ next")
	a.line("JMP done")
}

// writeTranspose512 writes Transpose512: blocks of 16 x 16, in two rounds of shuffles of elements and two of quarters.
func writeTranspose512(a assembler) {
	fmt.Fprintf(a.w, "\n// func Transpose512(dst, src *float32, stride, k int)\nTEXT ·Transpose512(SB), NOSPLIT, $0-32\n")
	a.line("MOVQ dst+0(FP), DI")
	a.line("MOVQ src+8(FP), SI")
	a.line("MOVQ stride+16(FP), R8")
	a.line("MOVQ k+24(FP), CX")
	a.line("LEAQ (R8)(R8*2), R9")
	a.label("transposeNext")
	a.line("MOVQ SI, AX")
	for i := range 16 {
		index := []string{"", "(R8*1)", "(R8*2)", "(R9*1)"}[i%4]
		a.line("VMOVUPS (AX)%s, Z%d", index, i)
		a.line("PREFETCHT0 128(AX)%s", index)
		if i%4 == 3 && i < 15 {
			a.line("LEAQ (AX)(R8*4), AX")
		}
	}
	for i := 0; i < 16; i += 2 { // pairs of columns of B
		a.line("VUNPCKLPS Z%d, Z%d, Z%d", i+1, i, 16+i)
		a.line("VUNPCKHPS Z%d, Z%d, Z%d", i+1, i, 17+i)
	}
	for i := 0; i < 16; i += 4 { // quadruples: Z(i+c) has rows c, 4+c, 8+c and 12+c in its quarters
		a.line("VUNPCKLPD Z%d, Z%d, Z%d", 18+i, 16+i, i)
		a.line("VUNPCKHPD Z%d, Z%d, Z%d", 18+i, 16+i, i+1)
		a.line("VUNPCKLPD Z%d, Z%d, Z%d", 19+i, 17+i, i+2)
		a.line("VUNPCKHPD Z%d, Z%d, Z%d", 19+i, 17+i, i+3)
	}
	for i := range 4 { // even quarters of two quadruples, odd ones, and those of the other two
		a.line("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", 4+i, i, 16+i)
		a.line("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", 4+i, i, 20+i)
		a.line("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", 12+i, 8+i, 24+i)
		a.line("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", 12+i, 8+i, 28+i)
	}
	for i := range 4 {
		a.line("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", 24+i, 16+i, i)
		a.line("VSHUFF32X4 $0x88, Z%d, Z%d, Z%d", 28+i, 20+i, 4+i)
		a.line("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", 24+i, 16+i, 8+i)
		a.line("VSHUFF32X4 $0xdd, Z%d, Z%d, Z%d", 28+i, 20+i, 12+i)
	}
	for i := range 16 {
		a.line("VMOVUPS Z%d, %d(DI)", i, i*64*vectors512)
	}
	a.line("ADDQ $64, SI")
	a.line("ADDQ $%d, DI", 16*64*vectors512)
	a.line("SUBQ $16, CX")
	a.line("JNZ transposeNext")
	a.line("VZEROUPPER")
	a.line("RET")
}

// writeSlivers512 writes slivers512: the rows of a tile are a masked move.
func writeSlivers512(a assembler) {
	fmt.Fprintf(a.w, "\n// func slivers512(dst, src *float32, panel, stride, tiles, k, rows int)\nTEXT "+
		"·slivers512(SB), NOSPLIT, $0-56\n")
	for i, argument := range []string{"dst", "src", "panel", "stride", "tiles", "k", "rows"} {
		a.line("MOVQ %s+%d(FP), %s", argument, i*8, []string{"DI", "SI", "R8", "R9", "BX", "CX", "AX"}[i])
	}
	a.line("KMOVW AX, K1")
	a.label("sliversNext")
	a.line("MOVQ SI, AX")
	a.line("MOVQ DI, DX")
	a.line("MOVQ BX, R10")
	a.label("sliver")
	a.line("PREFETCHT0 (AX)(R9*8)")
	a.line("VMOVUPS.Z (AX), K1, Z0")
	a.line("VMOVUPS Z0, K1, (DX)")
	a.line("ADDQ $%d, AX", 4*tileRows512)
	a.line("ADDQ R8, DX")
	a.line("DECQ R10")
	a.line("JNZ sliver")
	a.line("ADDQ R9, SI")
	a.line("ADDQ $%d, DI", 4*tileRows512)
	a.line("DECQ CX")
	a.line("JNZ sliversNext")
	a.line("VZEROUPPER")
	a.line("RET")
}

// writePanels512 writes panels512 and edge512, slivers512 the other way round: the columns of a tile.
func writePanels512(a assembler) {
	fmt.Fprintf(a.w, "\n// func panels512(dst, src *float32, panel, stride, tiles, k int)\nTEXT ·panels512(SB), "+
		"NOSPLIT, $0-48\n")
	for i, argument := range []string{"dst", "src", "panel", "stride", "tiles", "k"} {
		a.line("MOVQ %s+%d(FP), %s", argument, i*8, []string{"DI", "SI", "R8", "R9", "BX", "CX"}[i])
	}
	a.label("panelsNext")
	a.line("MOVQ SI, AX")
	a.line("MOVQ DI, DX")
	a.line("MOVQ BX, R10")
	a.label("panel")
	for v := range vectors512 {
		a.line("VMOVUPS %d(AX), Z%d", v*64, v)
	}
	for v := range vectors512 {
		a.line("PREFETCHT0 %d(AX)(R9*%d)", v*64, ahead512)
	}
	for v := range vectors512 {
		a.line("VMOVUPS Z%d, %d(DX)", v, v*64)
	}
	a.line("ADDQ $%d, AX", 64*vectors512)
	a.line("ADDQ R8, DX")
	a.line("DECQ R10")
	a.line("JNZ panel")
	a.line("ADDQ R9, SI")
	a.line("ADDQ $%d, DI", 64*vectors512)
	a.line("DECQ CX")
	a.line("JNZ panelsNext")
	a.line("VZEROUPPER")
	a.line("RET")

	fmt.Fprintf(a.w, "\n// func edge512(dst, src *float32, stride, k, columns int)\nTEXT ·edge512(SB), NOSPLIT, $0-40\n")
	a.line("MOVQ dst+0(FP), DI")
	a.line("MOVQ src+8(FP), SI")
	a.line("MOVQ stride+16(FP), R8")
	a.line("MOVQ k+24(FP), CX")
	a.line("MOVQ columns+32(FP), AX")
	a.line("KMOVW AX, K1")
	a.line("SHRQ $16, AX")
	a.line("KMOVW AX, K2")
	a.label("edgeNext")
	for v := range vectors512 {
		a.line("VMOVUPS.Z %d(SI), K%d, Z%d", v*64, v+1, v)
	}
	for v := range vectors512 {
		a.line("VMOVUPS Z%d, %d(DI)", v, v*64)
	}
	a.line("ADDQ R8, SI")
	a.line("ADDQ $%d, DI", 64*vectors512)
	a.line("DECQ CX")
	a.line("JNZ edgeNext")
	a.line("VZEROUPPER")
	a.line("RET")
}
