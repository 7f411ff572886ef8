package main

// writeExact512 writes the kernels for processors that multiply and add integers in one instruction.
func writeExact512(a assembler) {
	writeTiles512(a, "runNarrow512", "VPDPBUSD", 2, writeNarrow512)
	writeTiles512(a, "runWide512", "VPDPWSSD", 1, writeWide512)
	writeQuantise512(a)
}

// The registers of runNarrow512 and runWide512.
//
//	SI A   R8 scales of A   R12 cRow, R14 running C   Z0..Z7 sums, two a row    Z16, Z17 a turn of B
//	DI B   R9 scales of B   BX blocks left            Z8..Z15 C                 Z18, Z19 elements of A
//	DX C   R13 biases of A  CX turns left             Z20..Z29 a block's end    Z30 1023, Z31 1024 (float32)
//	AX the arguments
//
// A row of the tile has a number of vectors of C.
func writeTiles512(a assembler, name, product string, vectors int, end func(a assembler)) {
	a.function(name, "arguments512", "SI", "DI", "DX", "R8", "R13", "R9", "R12", "", "BX")
	eachOfC := func(format string) {
		a.line("MOVQ DX, R14")
		for i := range exactRows {
			for v := range vectors {
				a.line(format, v*64, 8+i*vectors+v)
			}
			a.line("ADDQ R12, R14")
		}
	}
	eachOfC("VMOVUPS %d(R14), Z%d")
	for range exactRows { // of the next tile
		for v := range vectors {
			a.line("PREFETCHT0 %d(R14)", v*64)
		}
		a.line("ADDQ R12, R14")
	}
	a.line("MOVL $0x44800000, CX") // 1024
	a.line("VPBROADCASTD CX, Z31")
	a.line("MOVL $1023, CX")
	a.line("VPBROADCASTD CX, Z30")
	a.label("block")
	for i := range 2 * exactRows {
		a.line("VPXORD Z%d, Z%d, Z%d", i, i, i)
	}
	a.line("MOVQ 56(AX), CX")
	a.label("turn")
	a.line("VMOVDQU32 (DI), Z16")
	a.line("VMOVDQU32 64(DI), Z17")
	for i := range exactRows {
		a.line("VPBROADCASTD %d(SI), Z%d", i*4, 18+i%2)
		for v := range 2 {
			a.line("%s Z%d, Z%d, Z%d", product, 18+i%2, 16+v, 2*i+v)
		}
	}
	a.line("ADDQ $64, SI")
	a.line("ADDQ $128, DI")
	a.line("DECQ CX")
	a.line("JNZ turn")
	end(a)
	a.line("ADDQ $64, R8")
	a.line("DECQ BX")
	a.line("JNZ block")
	a.line("MOVQ DX, R14")
	for i := range exactRows {
		for v := range vectors {
			a.line("VMOVUPS Z%d, %d(R14)", 8+i*vectors+v, v*64)
		}
		a.line("ADDQ R12, R14")
	}
	a.line("VZEROUPPER")
	a.line("RET")
}

// writeNarrow512 takes the bias from sums of integers of 8 bits, scales them, and adds them to C. The product with the
// scale is exact, so that it may be fused with the addition.
func writeNarrow512(a assembler) {
	a.line("VMOVUPS (R9), Z20")
	a.line("VMOVUPS 64(R9), Z21")
	for i := range exactRows {
		for v := range 2 {
			sum, scale := 2*i+v, 22+(2*i+v)%8
			a.line("VMULPS.BCST %d(R8), Z%d, Z%d", i*4, 20+v, scale)
			a.line("VPADDD.BCST %d(R13), Z%d, Z%d", i*4, sum, sum)
			a.line("VCVTDQ2PS Z%d, Z%d", sum, sum)
			a.line("VFMADD231PS Z%d, Z%d, Z%d", scale, sum, 8+sum)
		}
	}
	a.line("ADDQ $64, R13")
	a.line("ADDQ $128, R9")
}

// writeWide512 joins the sums h and l to 128*h+l, scales it and adds it to C: see writeWideSums.
func writeWide512(a assembler) {
	a.line("VMOVUPS (R9), Z20")
	for i := range exactRows {
		high, low, x, y, scale := 2*i, 2*i+1, 21+i%2*3, 22+i%2*3, 23+i%2*3
		a.line("VPSRAD $7, Z%d, Z%d", low, x)
		a.line("VPADDD Z%d, Z%d, Z%d", high, x, x)
		a.line("VPSRAD $3, Z%d, Z%d", x, x)
		a.line("VCVTDQ2PS Z%d, Z%d", x, x)
		a.line("VPSLLD $7, Z%d, Z%d", high, y)
		a.line("VPADDD Z%d, Z%d, Z%d", low, y, y)
		a.line("VPANDD Z30, Z%d, Z%d", y, y)
		a.line("VCVTDQ2PS Z%d, Z%d", y, y)
		a.line("VFMADD231PS Z31, Z%d, Z%d", x, y)
		a.line("VMULPS.BCST %d(R8), Z20, Z%d", i*4, scale)
		a.line("VFMADD231PS Z%d, Z%d, Z%d", scale, y, 8+i)
	}
	a.line("ADDQ $64, R9")
}
