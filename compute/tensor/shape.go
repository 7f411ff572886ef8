// Package tensor holds the values that programs compute on: element types, shapes, and dense row-major buffers with a
// Merkle root.
//
// It is not an arithmetic library (compute/kernel) and has no views, strides or reference counts: a Tensor owns its
// memory, or wraps the memory of its maker. Memory is little-endian on every supported port, so Bytes is the form
// that kernels read, and that is hashed and stored.
package tensor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// DType is the type of the elements of a tensor. The numbers are part of the format of programs and checkpoints: they
// are only ever appended to.
type DType uint8

// The element types.
const (
	Float32 DType = 1 // IEEE-754 binary32
	Int32   DType = 2 // two's complement
	Int64   DType = 3 // two's complement
	Uint8   DType = 4
	Bool    DType = 5 // one byte; 0 is false, 1 is true
	Uint32  DType = 6
	Int8    DType = 7 // two's complement
	// The halves are for storage: programs move and convert them, and calculate in float32.
	Float16  DType = 8 // IEEE-754 binary16
	BFloat16 DType = 9 // the first 16 bits of a binary32
)

var dtypes = [...]struct {
	name string
	size int
}{
	Float32: {"float32", 4}, Int32: {"int32", 4}, Int64: {"int64", 8},
	Uint8: {"uint8", 1}, Bool: {"bool", 1}, Uint32: {"uint32", 4},
	Int8: {"int8", 1}, Float16: {"float16", 2}, BFloat16: {"bfloat16", 2},
}

// Valid reports whether d is one of the element types above.
func (d DType) Valid() bool { return d >= Float32 && int(d) < len(dtypes) }

// Size is the number of bytes of one element, 0 if d is not valid.
func (d DType) Size() int {
	if !d.Valid() {
		return 0
	}
	return dtypes[d].size
}

// String returns the name of the type, such as "float32".
func (d DType) String() string {
	if !d.Valid() {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return dtypes[d].name
}

// MaxRank is the largest number of dimensions of a shape.
const MaxRank = 8

// ErrShape is wrapped by every error about a shape that no tensor can have.
var ErrShape = errors.New("tensor: invalid shape")

// Shape is an element type and the dimensions, row-major. No dimensions is a scalar; no dimension is 0.
type Shape struct {
	DType DType `cbor:"1,keyasint"`
	Dims  []int `cbor:"2,keyasint,omitempty"`
}

// Make returns the shape of the given type and dimensions.
func Make(d DType, dims ...int) Shape { return Shape{DType: d, Dims: dims} }

// Rank is the number of dimensions.
func (s Shape) Rank() int { return len(s.Dims) }

// Elements is the number of elements: the product of the dimensions. The shape must have passed Check.
func (s Shape) Elements() int {
	n := 1
	for _, d := range s.Dims {
		n *= d
	}
	return n
}

// Bytes is the size of a tensor of this shape.
func (s Shape) Bytes() int { return s.Elements() * s.DType.Size() }

// Equal reports whether both shapes have the same type and dimensions.
func (s Shape) Equal(o Shape) bool { return s.DType == o.DType && slices.Equal(s.Dims, o.Dims) }

// Check reports, as an error that wraps ErrShape, why no tensor of at most maxBytes can have this shape: an unknown
// element type, too many dimensions, a dimension below 1, or too many bytes. It never overflows.
func (s Shape) Check(maxBytes int) error {
	if !s.DType.Valid() {
		return fmt.Errorf("%w: unknown element type %d", ErrShape, uint8(s.DType))
	}
	if len(s.Dims) > MaxRank {
		return fmt.Errorf("%w: %d dimensions, at most %d are supported", ErrShape, len(s.Dims), MaxRank)
	}
	room := maxBytes / s.DType.Size()
	for i, d := range s.Dims {
		if d < 1 {
			return fmt.Errorf("%w: dimension %d is %d, must be positive", ErrShape, i, d)
		}
		room /= d
	}
	if room < 1 {
		return fmt.Errorf("%w: %s is larger than %d bytes", ErrShape, s, maxBytes)
	}
	return nil
}

// String returns the type and the dimensions, such as "float32[4,128]".
func (s Shape) String() string {
	var b strings.Builder
	b.WriteString(s.DType.String())
	b.WriteByte('[')
	for i, d := range s.Dims {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, d)
	}
	b.WriteByte(']')
	return b.String()
}

// Clone returns a shape that shares no memory with s.
func (s Shape) Clone() Shape { return Shape{DType: s.DType, Dims: slices.Clone(s.Dims)} }
