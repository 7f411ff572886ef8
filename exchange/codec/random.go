package codec

import (
	"fmt"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
)

// RandomK keeps one element of every run of Every and decodes the others as zeros. Which one follows from the seed, so
// no position travels, and all workers of a round keep the same ones: their updates can be added as they are (SPARTA,
// Baioumy and Cheema 2025). The position in a run moves by one each round: every element has its turn once in Every
// rounds. Where Every divides PartElements the positions come again after so many elements, so that a part of a tensor
// is encoded and decoded as one of its own.
type RandomK struct {
	Every        int // at least 1: the payload is 1/Every of the elements
	Bits         int // of a value, as in TopK
	Seed, Stream uint64
	Round        uint32
}

// RandomName is the name of a codec that keeps random elements.
func RandomName(c RandomK) string {
	return fmt.Sprintf("random/%d/%d/%d/%d/%d", c.Every, c.Bits, c.Seed, c.Stream, c.Round)
}

func randomByName(name string) (c RandomK, ok bool) {
	n, err := fmt.Sscanf(name, "random/%d/%d/%d/%d/%d", &c.Every, &c.Bits, &c.Seed, &c.Stream, &c.Round)
	return c, n == 5 && err == nil && RandomName(c) == name && c.Check() == nil
}

// parted reports whether parts of a tensor are encoded by themselves.
func (c RandomK) parted() bool { return PartElements%c.Every == 0 && c.Bits >= 16 }

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
	period := c.kept(n)
	if c.parted() {
		period = PartElements / c.Every
	}
	for k := range c.kept(n) {
		draw := k % period
		if draw%4 == 0 {
			words = philox.Block(c.Seed, c.Stream, uint64(draw/4))
		}
		lo := k * c.Every
		run := uint64(min(c.Every, n-lo))
		f(k, lo+int((uint64(words[draw%4])+uint64(c.Round))%run))
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
