package codec

import (
	"fmt"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// RandomK keeps one element of every run of Every and decodes the others as zeros. Which one follows from the seed, so
// no position travels, and all workers of a round keep the same ones: their updates can be added as they are (SPARTA,
// Baioumy and Cheema 2025). The position in a run moves by one each round: every element has its turn once in Every
// rounds.
type RandomK struct {
	Every        int // at least 1: the payload is 1/Every of the elements
	Bits         int // of a value, as in TopK
	Seed, Stream uint64
	Round        uint32
}

// Check implements Codec.
func (c RandomK) Check() error {
	if c.Every < 1 || !knownWidth(c.Bits) {
		return fmt.Errorf("codec: nothing keeps one of %d elements in %d bits", c.Every, c.Bits)
	}
	return nil
}

func (c RandomK) size(s tensor.Shape) int { return valueSize(c.kept(s.Elements()), c.Bits) }

func (c RandomK) kept(n int) int { return (n + c.Every - 1) / c.Every }

// Positions calls f with the number and the position of each element that is kept, out of n, in ascending order.
func (c RandomK) Positions(n int, f func(k, i int)) {
	var words [4]uint32
	for k := range c.kept(n) {
		if k%4 == 0 {
			words = kernel.PhiloxU32(c.Seed, c.Stream, uint64(k/4))
		}
		lo := k * c.Every
		run := uint64(min(c.Every, n-lo))
		f(k, lo+int((uint64(words[k%4])+uint64(c.Round))%run))
	}
}

func (c RandomK) encode(b []byte, x *tensor.Tensor) error {
	y := x.F32()
	kept := make([]float32, c.kept(len(y)))
	c.Positions(len(y), func(k, i int) { kept[k] = y[i] })
	encodeValues(b, kept, c.Bits)
	return nil
}

func (c RandomK) decode(x *tensor.Tensor, b []byte) error {
	y := x.F32()
	kept := make([]float32, c.kept(len(y)))
	if err := decodeValues(kept, b, c.Bits); err != nil {
		return err
	}
	c.Positions(len(y), func(k, i int) { y[i] = kept[k] })
	return nil
}
