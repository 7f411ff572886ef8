package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/starling-network/starling/exchange/codec/quantiser"
)

// The values that a sparse codec keeps travel in one of these widths, in bits.
//
//	1      the sign, and one float32 scale: the mean magnitude, summed in float64 in order
//	2..8   codes of the quantiser of Int8 with 2^bits levels, and their codebook of float32
//	16     bfloat16
//	32     float32
func knownWidth(bits int) bool { return bits >= 1 && bits <= 8 || bits == 16 || bits == 32 }

func valueSize(n, bits int) int {
	switch {
	case bits == 1:
		return 4 + bytesOf(n, 1)
	case bits <= 8:
		return 4<<bits + bytesOf(n, bits)
	}
	return n * bits / 8
}

// encodeValues fills b, valueSize zero bytes.
func encodeValues(b []byte, v []float32, bits int) {
	switch {
	case bits == 1:
		putSigns(b, addMagnitudes(0, v), len(v), v)
	case bits <= 8:
		codes := make([]byte, len(v))
		putFloats(b, quantiser.Quantise(codes, v, 1<<bits))
		for i, c := range codes {
			putBits(b[4<<bits:], i*bits, uint32(c), bits)
		}
	case bits == 16:
		putBrain(b, v)
	default:
		putFloats(b, v)
	}
}

// addMagnitudes adds those of values to a sum.
func addMagnitudes(sum float64, v []float32) float64 {
	for _, x := range v {
		sum += math.Abs(float64(x))
	}
	return sum
}

// putSigns writes signs after the scale of n values whose magnitudes have this sum.
func putSigns(b []byte, sum float64, n int, v []float32) {
	putFloats(b, []float32{float32(sum / float64(n))})
	for i, x := range v {
		b[4+i/8] |= byte(math.Float32bits(x) >> 31 << (i % 8))
	}
}

// decodeValues fills v from valueSize bytes. Numbers that are not finite are left for the caller to find.
func decodeValues(v []float32, b []byte, bits int) error {
	switch {
	case bits == 1:
		scale := binary.LittleEndian.Uint32(b)
		if scale >= 0x7f800000 {
			return fmt.Errorf("%w: a scale is %v", ErrPayload, math.Float32frombits(scale))
		}
		for i := range v {
			v[i] = math.Float32frombits(scale | getBits(b[4:], i, 1)<<31)
		}
		return padded(b[4:], len(v))
	case bits <= 8:
		book := make([]float32, 1<<bits)
		getFloats(book, b)
		if err := finite(book); err != nil {
			return err
		}
		for i := range v {
			v[i] = book[getBits(b[4<<bits:], i*bits, bits)]
		}
		return padded(b[4<<bits:], len(v)*bits)
	case bits == 16:
		getBrain(v, b)
	default:
		getFloats(v, b)
	}
	return nil
}
