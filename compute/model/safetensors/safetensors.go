// Package safetensors writes and reads the file format of the same name (huggingface/safetensors): eight bytes of
// header length, a JSON header, and the little-endian elements of the tensors without holes. It reads files of
// strangers.
//
// It deals in float32 tensors, the one form in which the weights of a model leave a run. They lie in the bytes of the
// file, which a caller may have mapped; those of half-precision files are converted when read, and may be written again
// as they were. Head alone describes tensors of any type, which others write. The package maps no memory itself, and
// knows nothing of models split over several files.
package safetensors

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
)

// Limits of a file that is read.
const (
	MaxHeader  = 100_000_000 // bytes, as in the reference reader
	MaxTensors = 1 << 20
)

var (
	// ErrMalformed is returned for bytes that are not a safetensors file.
	ErrMalformed = errors.New("safetensors: malformed file")
	// ErrDType is returned for a tensor of an element type that this package does not convert: use F32, F16 or BF16.
	ErrDType = errors.New("safetensors: unsupported element type")
	// ErrTensor is returned by EncodeAs and EncodeEach for names and tensors that make no file.
	ErrTensor = errors.New("safetensors: invalid tensor")
	// ErrInexact is returned by EncodeAs for a value that would be rounded.
	ErrInexact = errors.New("safetensors: a value does not fit the element type")
)

const (
	metadataKey = "__metadata__"
	lengthBytes = 8 // of the header's length; the data are aligned to as many
)

// entry is the header's line of one tensor. Offsets count from the end of the header.
type entry struct {
	name    string
	DType   string    `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// sizes of the elements of every type of the format that is whole bytes.
var sizes = map[string]uint64{
	"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E5M2": 1, "F8_E4M3": 1,
	"I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
}

// dtypeNames are the element types of tensors as the format calls them.
var dtypeNames = map[tensor.DType]string{
	tensor.Float32: "F32", tensor.Float16: "F16", tensor.BFloat16: "BF16",
	tensor.Int64: "I64", tensor.Int32: "I32", tensor.Int8: "I8", tensor.Uint32: "U32", tensor.Uint8: "U8",
	tensor.Bool: "BOOL",
}

// readable reports whether tensors of a type are converted to and from float32.
func readable(dtype string) bool { return dtype == "F32" || dtype == "F16" || dtype == "BF16" }

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// float32Shape returns the shape of a tensor once read.
func (e *entry) float32Shape() tensor.Shape {
	return tensor.Shape{DType: tensor.Float32, Dims: e.Shape}
}
