package codec

import "fmt"

// Fields of 0 to 16 bits lie one after the other, low bits first: 12-bit 0xABC and 0x123 are the bytes BC 3A 12.

// putBits writes a field at bit position at of zero bytes.
func putBits(b []byte, at int, v uint32, width int) {
	w := uint64(v) << (at % 8)
	for i := at / 8; i < bytesOf(at+width, 1); i++ {
		b[i] |= byte(w)
		w >>= 8
	}
}

func getBits(b []byte, at, width int) uint32 {
	var w uint64
	for i := bytesOf(at+width, 1) - 1; i >= at/8; i-- {
		w = w<<8 | uint64(b[i])
	}
	return uint32(w>>(at%8)) & (1<<width - 1)
}

// padded refuses bytes whose bits from position at on are not zero.
func padded(b []byte, at int) error {
	if at%8 != 0 && b[at/8]>>(at%8) != 0 {
		return fmt.Errorf("%w: bits after the last field", ErrPayload)
	}
	return nil
}

// bytesOf is the number of bytes of n fields.
func bytesOf(n, width int) int { return (n*width + 7) / 8 }
