// Package codec is the compression of updates: a tensor to the bytes that travel, and back, bit for bit the same on
// every machine. It does not combine updates (aggregate) and does not move them (network).
package codec

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

// Names of codecs, as in a work specification.
const (
	Int8    = "int8"    // 8-bit codes with a codebook of 256 means: 1 byte per element and 1 KiB per tensor
	Float32 = "float32" // as it is: 4 bytes per element
)

// ErrPayload wraps every reason why bytes are not an update.
var ErrPayload = errors.New("codec: payload refused")

// Known reports whether a codec of this name exists.
func Known(name string) bool { return name == Int8 || name == Float32 }

// Size is the number of bytes of the payload of a tensor of n elements.
func Size(name string, n int) int {
	if quantised(name, n) {
		return 4*levels + n
	}
	return 4 * n
}

// A tensor so small that its codebook would outweigh it travels as it is.
func quantised(name string, n int) bool { return name == Int8 && 4*levels+n < 4*n }

// Encode compresses one float32 tensor. A tensor that holds a NaN or an infinity is refused.
func Encode(name string, t *tensor.Tensor) ([]byte, error) {
	x := t.F32()
	if err := finite(x); err != nil {
		return nil, err
	}
	if quantised(name, len(x)) {
		return encodeInt8(x), nil
	}
	return putFloats(make([]byte, 0, 4*len(x)), x), nil
}

// Decode restores a float32 tensor of the given shape into a fresh tensor.
func Decode(name string, payload []byte, shape tensor.Shape) (*tensor.Tensor, error) {
	n := shape.Elements()
	if len(payload) != Size(name, n) {
		return nil, fmt.Errorf("%w: %d bytes for %d elements, want %d", ErrPayload, len(payload), n, Size(name, n))
	}
	t := tensor.New(shape)
	if quantised(name, n) {
		return t, decodeInt8(t.F32(), payload)
	}
	getFloats(t.F32(), payload)
	return t, finite(t.F32())
}

func finite(x []float32) error {
	for i, v := range x {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return fmt.Errorf("%w: element %d is %v", ErrPayload, i, v)
		}
	}
	return nil
}

func putFloats(b []byte, x []float32) []byte {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

func getFloats(dst []float32, b []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

// Update is the compressed update of one work unit, as it travels. A commitment binds every byte of it.
type Update struct {
	Round    uint32   `cbor:"1,keyasint"`
	Unit     uint32   `cbor:"2,keyasint"`
	Codec    string   `cbor:"3,keyasint"`
	Payloads [][]byte `cbor:"4,keyasint"` // one per parameter, in order
}

// Pack compresses a pseudo-gradient.
func Pack(name string, round, unit uint32, delta []*tensor.Tensor) (*Update, error) {
	u := &Update{Round: round, Unit: unit, Codec: name}
	for i, t := range delta {
		p, err := Encode(name, t)
		if err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i, err)
		}
		u.Payloads = append(u.Payloads, p)
	}
	return u, nil
}

// Encode returns the bytes of the blob.
func (u *Update) Encode() []byte { return canon.MustMarshal(u) }

// Root is what a commitment binds: the digests of all payloads.
func (u *Update) Root() canon.Digest {
	return canon.NewTree(canon.Leaves(u.Payloads)).Root()
}

// Expect is what a receiver knows about an update before it reads it.
type Expect struct {
	Round, Unit uint32
	Codec       string
	Shapes      []tensor.Shape
	Root        canon.Digest // committed; zero to skip the check
}

// Unpack reads the bytes of an update and restores the pseudo-gradient. Whatever is not exactly what the specification
// and the commitment promise is refused.
func Unpack(b []byte, want Expect) (*Update, []*tensor.Tensor, error) {
	u := new(Update)
	if err := canon.Unmarshal(b, u); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	switch {
	case u.Round != want.Round || u.Unit != want.Unit || u.Codec != want.Codec:
		return nil, nil, fmt.Errorf("%w: it is %s of unit %d of round %d", ErrPayload, u.Codec, u.Unit, u.Round)
	case len(u.Payloads) != len(want.Shapes):
		return nil, nil, fmt.Errorf("%w: %d tensors, want %d", ErrPayload, len(u.Payloads), len(want.Shapes))
	case !want.Root.IsZero() && u.Root() != want.Root:
		return nil, nil, fmt.Errorf("%w: not what its worker committed to", ErrPayload)
	}
	delta := make([]*tensor.Tensor, len(u.Payloads))
	for i, p := range u.Payloads {
		t, err := Decode(u.Codec, p, want.Shapes[i])
		if err != nil {
			return nil, nil, fmt.Errorf("parameter %d: %w", i, err)
		}
		delta[i] = t
	}
	return u, delta, nil
}
