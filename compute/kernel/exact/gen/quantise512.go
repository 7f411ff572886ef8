package main

import "fmt"

// The registers of quantise512.
//
//	SI a running row   R8 its stride   DX scales   K1 the lines that are there   Z10 2^-e    Z0..Z9 elements
//	DI the output      R9 its stride   R13 biases  K2 those that are no NaN      Z11 biases  Z12, Z13 orders of bytes
//	BX rows            CX rows left    AX the arguments                          Z14 64, Z15 128 in all bytes
func writeQuantise512(a assembler) {
	a.function("quantise512", "lines", "SI", "R8", "BX", "CX", "DI", "R9", "DX", "R13")
	writeScales512(a)
	a.line("VPXORD Z11, Z11, Z11")
	a.line("VMOVDQU32 ·bytesOfFour(SB), Z12")
	a.line("VMOVDQU32 ·wordsOfTwo(SB), Z13")
	a.broadcast("64", 14)
	a.broadcast("0x80808080", 15)
	for i, kind := range []string{"right8", "left15", "right15"} {
		a.line("CMPQ 72(AX), $%d", i+1)
		a.line("JEQ %s", kind)
	}
	a.turns("left8", 4, func() {
		a.line("VPADDD Z1, Z0, Z4")
		a.line("VPADDD Z3, Z2, Z5")
		a.line("VPADDD Z5, Z4, Z4")
		a.line("VPADDD Z4, Z11, Z11")
		a.fourBytes()
	}, func() {
		a.line("VPSLLD $7, Z11, Z11")
		a.line("VPXORD Z0, Z0, Z0")
		a.line("VPSUBD Z11, Z0, Z11")
		a.line("VMOVDQU32 Z11, (R13)")
	})
	nothing := func() {}
	a.turns("right8", 4, func() {
		a.fourBytes()
		a.line("VPXORD Z15, Z0, Z0")
	}, nothing)
	a.turns("left15", 2, func() { a.twoWords(0) }, nothing)
	a.turns("right15", 2, func() {
		for i := range 2 {
			a.line("VPADDD Z14, Z%d, Z%d", i, 2+i)
			a.line("VPSRAD $7, Z%d, Z%d", 2+i, 2+i)
			a.line("VPSLLD $7, Z%d, Z%d", 2+i, 4+i)
			a.line("VPSUBD Z%d, Z%d, Z%d", 4+i, i, i)
		}
		a.twoWords(0)
		a.line("VMOVDQU32 Z0, 64(DI)")
		a.twoWords(2)
		a.line("VMOVDQA64 Z2, Z0")
	}, nothing)
	a.comment("In each 16 bytes: the byte, or two bytes, of four elements of a line, from rows that follow on each other.")
	a.order("bytesOfFour", func(i int) int { return i%4*4 + i/4 })
	a.order("wordsOfTwo", func(i int) int { return i%4/2*8 + i/4*2 + i%2 })
}

// writeScales512 finds the greatest element of each line, the exponent e that follows, and 2^e and 2^-e.
func writeScales512(a assembler) {
	a.line("KMOVW CX, K1")
	a.broadcast("0x7fffffff", 1)
	a.line("VPXORD Z0, Z0, Z0")
	a.line("MOVQ SI, R14")
	a.line("MOVQ BX, CX")
	a.label("greatest")
	a.line("VMOVDQU32.Z (R14), K1, Z2")
	a.line("VPANDD Z1, Z2, Z2")
	a.line("VPMAXUD Z2, Z0, Z0")
	a.line("ADDQ R8, R14")
	a.line("DECQ CX")
	a.line("JNZ greatest")

	a.comment("The exponent is that of the greatest element, and one more beyond the mantissa of top.")
	a.line("VPADDD.BCST 64(AX), Z0, Z0")
	a.line("VPSRLD $23, Z0, Z0")
	a.line("VPSUBD.BCST 68(AX), Z0, Z0")
	a.broadcast("-63", 1)
	a.line("VPMAXSD Z1, Z0, Z0")
	a.broadcast("38", 1)
	a.line("VPCMPD $2, Z1, Z0, K2")
	a.broadcast("127", 1)
	a.line("VPADDD Z1, Z0, Z2")
	a.line("VPSLLD $23, Z2, Z2")
	a.broadcast("0x7fc00000", 3) // NaN
	a.line("VPBLENDMD Z2, Z3, K2, Z3")
	a.line("VMOVDQU32 Z3, (DX)")
	a.line("VPSUBD Z0, Z1, Z10")
	a.line("VPSLLD.Z $23, Z10, K2, Z10")
}

func (a assembler) broadcast(value string, z int) {
	a.line("MOVL $%s, CX", value)
	a.line("VPBROADCASTD CX, Z%d", z)
}

// turns writes a loop over turns of n elements of k, rounded to integers in Z0 and the registers after it. The body
// leaves the bytes of a turn in Z0.
func (a assembler) turns(name string, n int, body, end func()) {
	a.label(name)
	for i := range n {
		a.line("VMOVDQU32.Z (SI), K1, Z%d", i)
		a.line("VMULPS Z10, Z%d, Z%d", i, i)
		a.line("VCVTPS2DQ.Z Z%d, K2, Z%d", i, i)
		a.line("ADDQ R8, SI")
	}
	body()
	a.line("VMOVDQU32 Z0, (DI)")
	a.line("ADDQ R9, DI")
	a.line("SUBQ $%d, BX", n)
	a.line("JNZ %s", name)
	end()
	a.line("VZEROUPPER")
	a.line("RET")
}

// fourBytes packs the integers of 8 bits of four rows, those of a line together.
func (a assembler) fourBytes() {
	a.line("VPACKSSDW Z1, Z0, Z0")
	a.line("VPACKSSDW Z3, Z2, Z2")
	a.line("VPACKSSWB Z2, Z0, Z0")
	a.line("VPSHUFB Z12, Z0, Z0")
}

// twoWords packs the integers of 16 bits of a register and the one after it, those of a line together.
func (a assembler) twoWords(z int) {
	a.line("VPACKSSDW Z%d, Z%d, Z%d", z+1, z, z)
	a.line("VPSHUFB Z13, Z%d, Z%d", z, z)
}

// order writes an order of bytes for VPSHUFB, the same for each 16.
func (a assembler) order(name string, of func(i int) int) {
	for part := range 8 {
		word := uint64(0)
		for i := range 8 {
			word |= uint64(of(part%2*8+i)) << (8 * i)
		}
		fmt.Fprintf(a.w, "DATA ·%s+%d(SB)/8, $%#016x\n", name, part*8, word)
	}
	fmt.Fprintf(a.w, "GLOBL ·%s(SB), RODATA|NOPTR, $64\n", name)
}
