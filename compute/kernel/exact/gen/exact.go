package main

const exactRows = 4

// The registers of runExact.
//
//	SI A   R10 aRow, R11 three of it   R8 scales of A   R13 scaleRow   Y0..Y7 the sums, two a row
//	DI B                               R9 scales of B   CX turns left  Y8, Y9 two elements of k of B
//	DX C   R12 cRow                    R14 running C    BX blocks left Y10, Y13 those of a row of A
//	AX the arguments                   R15 running scales of A         Y11, Y12, Y14, Y15 products
func writeExact(a assembler) {
	a.function("runExact", "arguments", "SI", "DI", "DX", "R8", "R9", "R10", "R12", "R13", "", "BX")
	a.line("LEAQ (R10)(R10*2), R11")
	a.label("block")
	for i := range 2 * exactRows {
		a.line("VPXOR Y%d, Y%d, Y%d", i, i, i)
	}
	a.line("MOVQ 64(AX), CX")
	a.label("turn")
	for pair := range 2 {
		writeExactPair(a, pair)
	}
	a.line("ADDQ $8, SI")
	a.line("ADDQ $128, DI")
	a.line("DECQ CX")
	a.line("JNZ turn")
	a.line("MOVQ DX, R14")
	a.line("MOVQ R8, R15")
	a.line("VMOVUPS (R9), Y8")
	a.line("CMPQ 80(AX), $0")
	a.line("JNE wide")
	writeNarrowSums(a)
	a.line("JMP next")
	a.label("wide")
	writeWideSums(a)
	a.label("next")
	a.line("ADDQ $4, R8")
	a.line("DECQ BX")
	a.line("JNZ block")
	a.line("VZEROUPPER")
	a.line("RET")
}

// writeExactPair multiplies two elements of k.
func writeExactPair(a assembler, pair int) {
	a.line("VMOVDQU %d(DI), Y8", pair*64)
	a.line("VMOVDQU %d(DI), Y9", pair*64+32)
	for i, row := range []string{"(SI)", "(SI)(R10*1)", "(SI)(R10*2)", "(SI)(R11*1)"} {
		both := []int{10, 13}[i%2]
		a.line("VPBROADCASTD %d%s, Y%d", pair*4, row, both)
		for v := range 2 {
			product := []int{11, 12, 14, 15}[i%2*2+v]
			a.line("VPMADDWD Y%d, Y%d, Y%d", 8+v, both, product)
			a.line("VPADDD Y%d, Y%d, Y%d", product, 2*i+v, 2*i+v)
		}
	}
}

// writeNarrowSums scales sums of integers of 8 bits, which float32 holds, and adds them to C.
func writeNarrowSums(a assembler) {
	a.line("VMOVUPS 32(R9), Y9")
	for i := range exactRows {
		a.line("VBROADCASTSS (R15), Y10")
		for v := range 2 {
			sum := 2*i + v
			a.line("VMULPS Y%d, Y10, Y%d", 8+v, 11+v)
			a.line("VCVTDQ2PS Y%d, Y%d", sum, sum)
			a.line("VMULPS Y%d, Y%d, Y%d", 11+v, sum, sum)
			a.line("VADDPS %d(R14), Y%d, Y%d", v*32, sum, sum)
			a.line("VMOVUPS Y%d, %d(R14)", sum, v*32)
		}
		a.line("ADDQ R12, R14")
		a.line("ADDQ R13, R15")
	}
	a.line("ADDQ $64, R9")
}

// writeWideSums joins the sums h and l of 8 columns to s = 128*h+l, below 2^34, scales it and adds it to C. With
// x = s/1024 rounded down and y = s mod 1024, both of which float32 holds, a fused 1024*x+y is s rounded once.
func writeWideSums(a assembler) {
	a.line("MOVL $0x44800000, CX") // 1024
	a.line("MOVD CX, X9")
	a.line("VPBROADCASTD X9, Y9")
	a.line("MOVL $1023, CX")
	a.line("MOVD CX, X12")
	a.line("VPBROADCASTD X12, Y12")
	for i := range exactRows {
		high, low := 2*i, 2*i+1
		a.line("VPSRAD $7, Y%d, Y11", low)
		a.line("VPADDD Y%d, Y11, Y11", high)
		a.line("VPSRAD $3, Y11, Y11")
		a.line("VCVTDQ2PS Y11, Y11")
		a.line("VPSLLD $7, Y%d, Y%d", high, high)
		a.line("VPADDD Y%d, Y%d, Y%d", high, low, low)
		a.line("VPAND Y12, Y%d, Y%d", low, low)
		a.line("VCVTDQ2PS Y%d, Y%d", low, low)
		a.line("VFMADD231PS Y9, Y11, Y%d", low)
		a.line("VBROADCASTSS (R15), Y10")
		a.line("VMULPS Y8, Y10, Y10")
		a.line("VMULPS Y10, Y%d, Y%d", low, low)
		a.line("VADDPS (R14), Y%d, Y%d", low, low)
		a.line("VMOVUPS Y%d, (R14)", low)
		a.line("ADDQ R12, R14")
		a.line("ADDQ R13, R15")
	}
	a.line("ADDQ $32, R9")
}
