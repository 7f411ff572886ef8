package codec

import (
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec/quantiser"
)

const levels = 256 // of Int8

// codebook is Int8, the uniform 8-bit quantiser of the INTELLECT-1 run (Jaghouar et al. 2024, section 3).
type codebook struct{ fixed }

func (codebook) size(s tensor.Shape) int { return 4*levels + s.Elements() }

func (codebook) encode(b []byte, x *tensor.Tensor) error {
	book := quantiser.Quantise(b[4*levels:], x.F32(), levels)
	putFloats(b, book)
	return nil
}

func (codebook) decode(x *tensor.Tensor, b []byte) error {
	var book [levels]float32
	getFloats(book[:], b)
	if err := finite(book[:]); err != nil {
		return err
	}
	dst := x.F32()
	for i, c := range b[4*levels:] {
		dst[i] = book[c]
	}
	return nil
}
