package kernel

import "golang.org/x/sys/cpu"

// runs reports whether the processor has the instructions of p and the system saves their registers.
func (p Path) runs() bool {
	x := &cpu.X86
	avx2 := x.HasAVX2 && x.HasFMA
	switch p {
	case AVX2:
		return avx2
	case AVX512:
		return avx2 && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL
	}
	return p == Portable
}
