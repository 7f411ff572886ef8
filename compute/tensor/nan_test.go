package tensor

import (
	"math"
	"testing"
)

// A NaN of either sign and any payload is found in every place, and nothing else is taken for one.
func TestHasNaN(t *testing.T) {
	for n := range 9 {
		mem := Alloc(4 * n)
		data := As[float32](mem)
		for i := range data {
			for _, bits := range []uint32{0, 1 << 31, 1, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000} {
				data[i] = math.Float32frombits(bits)
				if hasNaN(mem) {
					t.Errorf("%#x in place %d of %d is taken for a NaN", bits, i, n)
				}
			}
			for _, bits := range []uint32{0x7f800001, 0x7fc00000, 0x7fffffff, 0xff800001, 0xffffffff} {
				data[i] = math.Float32frombits(bits)
				if !hasNaN(mem) {
					t.Errorf("NaN %#x in place %d of %d is not found", bits, i, n)
				}
			}
			data[i] = math.MaxFloat32
		}
	}
}
