package tensor

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"unsafe"
)

// Align is the alignment of the memory that New allocates, in bytes: one cache line, one AVX-512 register.
const Align = 64

// AlignUp is the smallest multiple of Align that is not below n.
func AlignUp(n int) int { return (n + Align - 1) / Align * Align }

// CanonicalNaN is the one NaN that hashed values contain. Which NaN an operation yields differs between processors.
const CanonicalNaN = 0x7fc00000

// Element is a Go type that holds one element of a tensor. Bool tensors are read as uint8, halves as the uint16 of
// their bits.
type Element interface {
	float32 | int8 | int32 | int64 | uint8 | uint16 | uint32
}

// Tensor is a dense row-major array. Its element bytes are little-endian.
type Tensor struct {
	Shape Shape
	mem   []byte
	owner Owner // nil: the collector
}

// Owner has memory that the collector does not see. The memory lasts as long as its owner can be reached; slices of it
// do not keep it.
type Owner interface {
	// Rest lets the system take back a part of the memory that is not read for a while. It comes back when it is read.
	Rest(part []byte)
}

// New returns a tensor of zeros in memory of its own. The shape must have passed Check.
func New(s Shape) *Tensor { return &Tensor{Shape: s, mem: Alloc(s.Bytes())} }

// paged is the size from which on the runtime gives memory pages of its own, so that it begins at a multiple of Align
// without room for that: a tensor of whole pages would take one page more.
const paged = 64 << 10

// Alloc returns n zero bytes that start at a multiple of Align.
func Alloc(n int) []byte {
	if n >= paged {
		if raw := make([]byte, n); uintptr(unsafe.Pointer(unsafe.SliceData(raw)))%Align == 0 {
			return raw[:n:n]
		}
	}
	raw := make([]byte, n+Align-1)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % Align
	return raw[skip : int(skip)+n : int(skip)+n]
}

// Aligned reports whether memory begins where Wrap wants it: at a multiple of 8.
func Aligned(mem []byte) bool { return uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%8 == 0 }

// Wrap returns a tensor over memory of the caller. mem must hold exactly the bytes of the shape, at an address that
// is a multiple of 8.
func Wrap(s Shape, mem []byte) *Tensor {
	if len(mem) != s.Bytes() {
		panic(fmt.Sprintf("tensor: %d bytes wrapped as %s, which has %d", len(mem), s, s.Bytes()))
	}
	return &Tensor{Shape: s, mem: mem}
}

// Lend is Wrap over memory that has an owner, which the tensor keeps. A function that uses a slice of the tensor's
// elements keeps the tensor, or another one of the owner, with runtime.KeepAlive.
func Lend(s Shape, mem []byte, owner Owner) *Tensor {
	t := Wrap(s, mem)
	t.owner = owner
	return t
}

// As is a tensor of another shape, of as many bytes, in the same memory.
func (t *Tensor) As(s Shape) *Tensor {
	x := Wrap(s, t.mem)
	x.owner = t.owner
	return x
}

// Lent reports whether the memory has an owner other than the collector: it is not to be written to.
func (t *Tensor) Lent() bool { return t.owner != nil }

// Rest says that the tensor is not read for a while.
func (t *Tensor) Rest() {
	if t.owner != nil {
		t.owner.Rest(t.mem)
	}
}

// FromBytes returns a tensor of the shape with a copy of the given little-endian bytes, or an error that wraps ErrShape
// if they are not exactly as many as the shape has.
func FromBytes(s Shape, data []byte) (*Tensor, error) {
	if err := s.Check(math.MaxInt); err != nil {
		return nil, err
	}
	if len(data) != s.Bytes() {
		return nil, fmt.Errorf("%w: %d bytes given for %s, which has %d", ErrShape, len(data), s, s.Bytes())
	}
	t := New(s)
	copy(t.mem, data)
	return t, nil
}

// CopyF32 returns a copy of little-endian float32.
func CopyF32(data []byte) []float32 {
	mem := Alloc(len(data))
	copy(mem, data)
	return As[float32](mem)
}

// FromF32 returns a tensor with a copy of data. No dims makes a scalar. The product of dims must be len(data).
func FromF32(data []float32, dims ...int) *Tensor { return from(Float32, data, dims) }

// FromI32 is FromF32 for int32.
func FromI32(data []int32, dims ...int) *Tensor { return from(Int32, data, dims) }

// FromI64 is FromF32 for int64.
func FromI64(data []int64, dims ...int) *Tensor { return from(Int64, data, dims) }

// Scalar returns a float32 tensor without dimensions.
func Scalar(x float32) *Tensor { return FromF32([]float32{x}) }

func from[T Element](d DType, data []T, dims []int) *Tensor {
	s := Make(d, dims...).Clone()
	if s.Elements() != len(data) {
		panic(fmt.Sprintf("tensor: %d elements given for %s", len(data), s))
	}
	t := New(s)
	copy(As[T](t.mem), data)
	return t
}

// As reads memory as elements of type T. mem must be aligned for T, as all memory of tensors is.
func As[T Element](mem []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/int(unsafe.Sizeof(x)))
}

// Bytes returns the memory of the tensor, little-endian; writing to it changes the tensor.
func (t *Tensor) Bytes() []byte { return t.mem }

// F32 returns the elements of a float32 tensor; writing to them changes the tensor.
func (t *Tensor) F32() []float32 { return elements[float32](t, Float32) }

// I32 is F32 for int32.
func (t *Tensor) I32() []int32 { return elements[int32](t, Int32) }

// I64 is F32 for int64.
func (t *Tensor) I64() []int64 { return elements[int64](t, Int64) }

func elements[T Element](t *Tensor, d DType) []T {
	if t.Shape.DType != d {
		panic(fmt.Sprintf("tensor: %s read as %s", t.Shape, d))
	}
	return As[T](t.mem)
}

// Clone returns a tensor of the same shape and bytes in memory of its own.
func (t *Tensor) Clone() *Tensor {
	c := New(t.Shape.Clone())
	copy(c.mem, t.mem)
	runtime.KeepAlive(t)
	return c
}

// large is from how many bytes of new garbage on Dropped runs the collector.
const large = 16 << 20

// Dropped runs the collector if its caller has just dropped the last reference to at least 16 MiB of tensors or encoded
// tensors. The tensors that are made next then take their memory, and the process does not hold both.
func Dropped(bytes int) {
	if bytes >= large {
		runtime.GC()
	}
}

// Canonicalize replaces every NaN of a float32 tensor by CanonicalNaN, in place. Other tensors are left alone.
func (t *Tensor) Canonicalize() {
	if t.Shape.DType == Float32 {
		for part := range slices.Chunk(t.mem, LeafBytes) {
			if hasNaN(part) {
				canonicalize(As[float32](part))
			}
		}
	}
}

func canonicalize(data []float32) {
	nan := math.Float32frombits(CanonicalNaN)
	for i, x := range data {
		if x != x {
			data[i] = nan
		}
	}
}
