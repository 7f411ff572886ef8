#include "textflag.h"

// Loops over 8 elements a step, and 32 while there are as many: dst = x op y.

#define ARGUMENTS \
	MOVQ dst+0(FP), DI \
	MOVQ x+8(FP), SI \
	MOVQ y+16(FP), DX \
	MOVQ n+24(FP), CX

#define EIGHT(OP, at) \
	VMOVUPS at(SI), Y0 \
	OP at(DX), Y0, Y0 \
	VMOVUPS Y0, at(DI)

#define ADVANCE(bytes, elements) \
	ADDQ $bytes, SI \
	ADDQ $bytes, DX \
	ADDQ $bytes, DI \
	SUBQ $elements, CX

#define LOOP(OP) \
	ARGUMENTS \
wide: \
	CMPQ CX, $32 \
	JLT  narrow \
	EIGHT(OP, 0) \
	EIGHT(OP, 32) \
	EIGHT(OP, 64) \
	EIGHT(OP, 96) \
	ADVANCE(128, 32) \
	JMP  wide \
narrow: \
	TESTQ CX, CX \
	JZ   done \
	EIGHT(OP, 0) \
	ADVANCE(32, 8) \
	JMP  narrow \
done: \
	VZEROUPPER \
	RET

// func addVector(dst, x, y *float32, n int)
TEXT ·addVector(SB), NOSPLIT, $0-32
	LOOP(VADDPS)

// func subVector(dst, x, y *float32, n int)
TEXT ·subVector(SB), NOSPLIT, $0-32
	LOOP(VSUBPS)

// func mulVector(dst, x, y *float32, n int)
TEXT ·mulVector(SB), NOSPLIT, $0-32
	LOOP(VMULPS)

// func divVector(dst, x, y *float32, n int)
TEXT ·divVector(SB), NOSPLIT, $0-32
	LOOP(VDIVPS)

// VMAXPS returns its second operand if one is NaN or both are zeros. The larger of both orders, and-ed, has the sign of
// +0 if one zero has it; where an operand is NaN, all bits are set. VMINPS likewise, with or.

#define EXTREMUM(OP, COMBINE) \
	ARGUMENTS \
next: \
	VMOVUPS (SI), Y0 \
	VMOVUPS (DX), Y1 \
	OP Y1, Y0, Y2 \
	OP Y0, Y1, Y3 \
	COMBINE Y2, Y3, Y2 \
	VCMPPS $3, Y0, Y1, Y3 \
	VORPS Y3, Y2, Y2 \
	VMOVUPS Y2, (DI) \
	ADVANCE(32, 8) \
	JNZ  next \
	VZEROUPPER \
	RET

// func maxVector(dst, x, y *float32, n int)
TEXT ·maxVector(SB), NOSPLIT, $0-32
	EXTREMUM(VMAXPS, VANDPS)

// func minVector(dst, x, y *float32, n int)
TEXT ·minVector(SB), NOSPLIT, $0-32
	EXTREMUM(VMINPS, VORPS)

// func sumVector(acc, x *float32, n int)
TEXT ·sumVector(SB), NOSPLIT, $0-24
	MOVQ acc+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
next:
	VADDPS (SI), Y0, Y0
	VADDPS 32(SI), Y1, Y1
	ADDQ $64, SI
	SUBQ $16, CX
	JNZ  next
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VZEROUPPER
	RET
