package safetensors

import (
	"math"

	"github.com/starling-network/starling/compute/kernel"
)

// toF16 returns the binary16 that kernel.FromFloat16 widens to x; false for a value that binary16 does not have.
func toF16(x float32) (uint16, bool) {
	b := math.Float32bits(x)
	if x != x { // sign and payload stay
		return uint16(b>>16&0x8000) | 31<<10 | uint16(b>>13)&1023, b&(1<<13-1) == 0
	}
	h := kernel.ToFloat16(x)
	return h, math.Float32bits(kernel.FromFloat16(h)) == b
}

// toBF16 takes the first half of a binary32; false if the rest is not zero.
func toBF16(x float32) (uint16, bool) {
	b := math.Float32bits(x)
	return uint16(b >> 16), b&0xffff == 0
}
