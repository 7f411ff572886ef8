package canon

import "github.com/klauspost/cpuid/v2"

//go:noescape
func compress16(state *uint32, messages **byte, blocks int)

//go:noescape
func compress8(state *uint32, messages **byte, blocks int)

var (
	sixteen = lanes{16, compress16} // needs AVX-512F and BW
	eight   = lanes{8, compress8}   // needs AVX2
)

// fastest is what this processor digests many leaves with: its own instructions for SHA-256 beat eight lanes, and
// sixteen lanes beat them.
var fastest = func() lanes {
	switch {
	case cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW):
		return sixteen
	case cpuid.CPU.Supports(cpuid.AVX2) && !cpuid.CPU.Supports(cpuid.SHA):
		return eight
	}
	return lanes{width: 1}
}()
