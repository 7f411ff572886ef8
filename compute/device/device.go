// Package device runs plans (compute/lower) on devices that are programmed in OpenCL C, with the bits that the
// program specifies: its kernels are those of compute/kernel, operation by operation. Elementwise groups are printed
// as a kernel each; a step without a kernel is computed by compute/cpu in its place.
//
// The package loads no driver: a Device is its caller's. It does not decide which devices are exact either: package
// suite compares the results of a device with those of the portable kernels.
package device

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/compute/kernel"
)

// ErrNumerics is returned for a program of a version of the numerics that a device does not compute.
var ErrNumerics = errors.New("the device lacks the numbers of 64 bits that the program needs")

// Device compiles OpenCL C and has memory. Kernels run one after the other, and what they write is there for the next.
type Device interface {
	// Build compiles a source with FP_CONTRACT off, correctly rounded divisions and roots, and subnormals.
	Build(source string) (Code, error)
	Allocate(bytes int) (Buffer, error)
	// Numerics lists the versions of the numerics whose kernels the device has the numbers for.
	Numerics() []uint32
}

// Code is compiled kernels.
type Code interface {
	// Start starts a kernel, which gets the memory, the table and l.At.
	Start(l Launch, memory, table Buffer) error
	Free()
}

// Buffer is memory of a device. Read and Write wait for the kernels that were started before.
type Buffer interface {
	Read(offset int, into []byte) error
	Write(offset int, from []byte) error
	Free()
}

// Launch is a kernel on a grid of work-items, in groups of Local, which divides Global in each dimension.
type Launch struct {
	Kernel        string
	Global, Local [3]int
	At            int // where its numbers begin in the table
}

// Capabilities are what a driver says of a device.
type Capabilities struct {
	Name, Driver   string
	Memory, Buffer int64 // bytes in all, and of the largest buffer
	Group          int   // work-items of the largest work-group
	Subnormals     bool  // of float32 are kept
	Special        bool  // infinities and NaN are there
	Fused          bool  // multiply-adds of float32
	Rounded        bool  // divisions and roots of float32 are correctly rounded
	Double         bool  // float64 with all of that, for version 1 of the numerics
	LittleEndian   bool
	Processor      bool // it is a processor, and no accelerator
}

// largestGroup is the number of work-items of the largest work-group of a kernel.
const largestGroup = 256

// Numerics lists the versions of the numerics that the device may compute: version 1 needs float64.
func (c Capabilities) Numerics() []uint32 {
	if c.Double {
		return []uint32{kernel.Version1, kernel.Version2}
	}
	return []uint32{kernel.Version2}
}

// Missing names what a device lacks for exact results, "" for nothing. That proves nothing yet: see package suite.
func (c Capabilities) Missing() string {
	for _, need := range []struct {
		has  bool
		what string
	}{
		{c.Subnormals, "subnormal numbers (CL_FP_DENORM)"},
		{c.Special, "infinities and NaN (CL_FP_INF_NAN)"},
		{c.Fused, "fused multiply-adds (CL_FP_FMA)"},
		{c.Rounded, "correctly rounded divisions and roots (CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT)"},
		{c.LittleEndian, "little-endian memory"},
		{c.Group >= largestGroup, fmt.Sprintf("work-groups of %d (CL_DEVICE_MAX_WORK_GROUP_SIZE)", largestGroup)},
	} {
		if !need.has {
			return need.what
		}
	}
	return ""
}
