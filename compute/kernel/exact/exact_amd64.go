package exact

import "golang.org/x/sys/cpu"

// multiplies reports whether the processor has AVX-512 VNNI, which path AVX512 does not ask for.
var multiplies = cpu.X86.HasAVX512VNNI

// runExact adds blocks of integer products to 4 rows of C. It needs AVX2 and FMA3.
//
//go:noescape
func runExact(x *arguments)

// runNarrow512 adds blocks of products of 8 bits to 4 rows and 32 columns of C. It needs AVX-512 F, BW and VNNI.
//
//go:noescape
func runNarrow512(x *arguments512)

// runWide512 adds blocks of products of 15 bits to 4 rows and 16 columns of C. It needs AVX-512 F, DQ and VNNI.
//
//go:noescape
func runWide512(x *arguments512)

// quantise512 writes the integers of a block of lines. It needs AVX-512 F and BW.
//
//go:noescape
func quantise512(x *lines)
