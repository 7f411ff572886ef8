// Package codec is the compression of updates: a tensor to the bytes that travel, and back, bit for bit the same on
// every machine. Error feedback keeps the compression error for the next round. The package does not combine updates
// (aggregate) and does not move them (network).
//
// The size of a payload depends on the codec and the shape alone, so a receiver knows it before the first byte
// arrives, and decoded elements are finite. A payload that decodes need not be one that Encode writes: only a
// commitment to the bytes, and a second execution, show that it is honest.
package codec

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/tensor"
)

// Names of codecs without parameters, or with their usual ones, as in a work specification.
const (
	Int8     = "int8"     // 8-bit codes with a codebook of 256 means: 1 byte per element and 1 KiB per tensor
	Float32  = "float32"  // as it is: 4 bytes per element
	Float16  = "float16"  // rounded to IEEE-754 binary16, saturated at 65504: 2 bytes
	BFloat16 = "bfloat16" // rounded to 8 bits of precision: 2 bytes
	E3M0     = "e3m0"     // sign and power of two in 4 bits, a scale for 256 elements: 0.508 bytes
	Sign     = "sign"     // the sign in 1 bit, a scale for 4096 elements: 0.126 bytes
	Sparse   = "topk"     // 64 of every 4096 elements in 2 bits: TopK{4096, 64, 2} of SparseLoCo: 0.0195 bytes
	Cosine   = "dct"      // 32 of every 64 x 64 frequencies in 16 bits: DCT{64, 32, 16} of DeMo: 0.0244 bytes
	Skip     = "nothing"  // of a tensor that is not sent: no bytes, and zeros come back
)

var named = map[string]Codec{
	Int8: codebook{}, Float32: plain{}, Float16: half{}, BFloat16: bfloat16{}, E3M0: e3m0{}, Sign: sign{},
	Sparse: TopK{Chunk: 4096, K: 64, Bits: 2}, Cosine: DCT{Side: 64, K: 32, Bits: 16}, Skip: nothing{},
}

// ErrPayload wraps every reason why bytes are not an update.
var ErrPayload = errors.New("codec: payload refused")

// Codec is one way to compress. Its methods take only finite numbers and payloads of the right length: Compress and
// Restore check these.
type Codec interface {
	Check() error // why a codec with these parameters cannot exist
	size(s tensor.Shape) int
	encode(b []byte, x *tensor.Tensor) error // fills b, size zero bytes
	decode(x *tensor.Tensor, b []byte) error // fills x, zeros
}

// ByName returns the codec of a name in a work specification: one of those above, or that of TopKName or RandomName.
func ByName(name string) (Codec, bool) {
	if c, ok := named[name]; ok {
		return c, true
	}
	if c, ok := randomByName(name); ok {
		return c, true
	}
	return topKByName(name)
}

// Known reports whether a codec of this name exists.
func Known(name string) bool {
	_, ok := ByName(name)
	return ok
}

func byName(name string) (Codec, error) {
	c, ok := ByName(name)
	if !ok {
		return nil, fmt.Errorf("codec: %q is not known", name)
	}
	return c, nil
}

// fixed is a codec without parameters.
type fixed struct{}

func (fixed) Check() error { return nil }

// nothing is the codec of a tensor that is not sent.
type nothing struct{ fixed }

func (nothing) size(tensor.Shape) int               { return 0 }
func (nothing) encode([]byte, *tensor.Tensor) error { return nil }
func (nothing) decode(*tensor.Tensor, []byte) error { return nil }

// Size is the number of bytes of the payload of a tensor of this shape. The codec must have passed Check.
func Size(c Codec, s tensor.Shape) int { return effective(c, s).size(s) }

// A tensor that the codec would not make smaller travels as it is.
func effective(c Codec, s tensor.Shape) Codec {
	if c.size(s) < s.Bytes() {
		return c
	}
	return plain{}
}

// Compress returns the payload of a float32 tensor, which it leaves alone. A tensor that holds a NaN or an infinity is
// refused.
func Compress(c Codec, t *tensor.Tensor) ([]byte, error) {
	if err := errors.Join(c.Check(), finite(t.F32())); err != nil {
		return nil, err
	}
	c = effective(c, t.Shape)
	b := make([]byte, c.size(t.Shape))
	return b, c.encode(b, t)
}

// Restore decodes a payload into a fresh float32 tensor of the given shape. Errors about the payload wrap ErrPayload.
func Restore(c Codec, payload []byte, s tensor.Shape) (*tensor.Tensor, error) {
	if err := c.Check(); err != nil {
		return nil, err
	}
	c = effective(c, s)
	if n := c.size(s); len(payload) != n {
		return nil, fmt.Errorf("%w: %d bytes for %s, want %d", ErrPayload, len(payload), s, n)
	}
	t := tensor.New(s)
	if err := c.decode(t, payload); err != nil {
		return nil, err
	}
	return t, finite(t.F32())
}

// Encode is Compress by name.
func Encode(name string, t *tensor.Tensor) ([]byte, error) {
	c, err := byName(name)
	if err != nil {
		return nil, err
	}
	return Compress(c, t)
}

// Decode is Restore by name.
func Decode(name string, payload []byte, s tensor.Shape) (*tensor.Tensor, error) {
	c, err := byName(name)
	if err != nil {
		return nil, err
	}
	return Restore(c, payload, s)
}

func finite(x []float32) error {
	for i, v := range x {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return fmt.Errorf("%w: element %d is %v", ErrPayload, i, v)
		}
	}
	return nil
}
