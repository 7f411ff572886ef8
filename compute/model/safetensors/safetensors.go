// Package safetensors writes and reads the file format of the same name (huggingface/safetensors): eight bytes of header
// length, a JSON header, and the little-endian elements of the tensors without holes. It reads files of strangers.
//
// It deals in float32 tensors, the one form in which weights leave a run; half-precision files are converted when read.
// It does not map memory, and knows nothing of models split over several files.
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
	// ErrTensor is returned by Encode for names and tensors that make no file.
	ErrTensor = errors.New("safetensors: invalid tensor")
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

// element sizes of the types that Decode reads.
var sizes = map[string]uint64{"F32": 4, "F16": 2, "BF16": 2}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrMalformed}, args...)...)
}

// float32Shape returns the shape of a tensor once read.
func (e *entry) float32Shape() tensor.Shape {
	return tensor.Shape{DType: tensor.Float32, Dims: e.Shape}
}
