// Package opencl is the devices of the OpenCL drivers of this machine, for package compute/device: it loads libOpenCL
// without cgo. A program that imports it is linked dynamically, so starling itself does not: the program
// starling-device does, in a process of its own, which a driver that hangs or crashes takes along.
//
// It reports the declarations of a driver, and compiles the sources that it is given. It neither computes nor judges.
package opencl

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The functions of libOpenCL that the package calls, by the names of the standard.
var (
	clGetPlatformIDs       func(n uint32, ids *uintptr, count *uint32) int32
	clGetDeviceIDs         func(platform uintptr, kind uint64, n uint32, ids *uintptr, count *uint32) int32
	clGetDeviceInfo        func(id uintptr, what uint32, size uintptr, value unsafe.Pointer, got *uintptr) int32
	clCreateContext        func(props *uintptr, n uint32, ids *uintptr, notify, data uintptr, code *int32) uintptr
	clReleaseContext       func(context uintptr) int32
	clCreateCommandQueue   func(context, id uintptr, props uint64, code *int32) uintptr
	clReleaseCommandQueue  func(queue uintptr) int32
	clCreateProgramWithSrc func(context uintptr, n uint32, text **byte, sizes *uintptr, code *int32) uintptr
	clBuildProgram         func(p uintptr, n uint32, ids *uintptr, options string, notify, data uintptr) int32
	clGetProgramBuildInfo  func(p, id uintptr, what uint32, size uintptr, value *byte, got *uintptr) int32
	clReleaseProgram       func(p uintptr) int32
	clCreateKernel         func(p uintptr, name string, code *int32) uintptr
	clReleaseKernel        func(k uintptr) int32
	clSetKernelArg         func(k uintptr, i uint32, size uintptr, value unsafe.Pointer) int32
	clCreateBuffer         func(context uintptr, flags uint64, size uintptr, host unsafe.Pointer, code *int32) uintptr
	clReleaseMemObject     func(buffer uintptr) int32
	clEnqueueWriteBuffer   func(q, b uintptr, wait uint32, at, n uintptr, p unsafe.Pointer, m uint32, l, e uintptr) int32
	clEnqueueReadBuffer    func(q, b uintptr, wait uint32, at, n uintptr, p unsafe.Pointer, m uint32, l, e uintptr) int32
	clEnqueueNDRangeKernel func(q, k uintptr, dim uint32, o, global, local *uintptr, m uint32, l, e uintptr) int32
	clFinish               func(queue uintptr) int32
)

var functions = map[string]any{
	"clGetPlatformIDs": &clGetPlatformIDs, "clGetDeviceIDs": &clGetDeviceIDs, "clGetDeviceInfo": &clGetDeviceInfo,
	"clCreateContext": &clCreateContext, "clReleaseContext": &clReleaseContext,
	"clCreateCommandQueue": &clCreateCommandQueue, "clReleaseCommandQueue": &clReleaseCommandQueue,
	"clCreateProgramWithSource": &clCreateProgramWithSrc, "clBuildProgram": &clBuildProgram,
	"clGetProgramBuildInfo": &clGetProgramBuildInfo, "clReleaseProgram": &clReleaseProgram,
	"clCreateKernel": &clCreateKernel, "clReleaseKernel": &clReleaseKernel, "clSetKernelArg": &clSetKernelArg,
	"clCreateBuffer": &clCreateBuffer, "clReleaseMemObject": &clReleaseMemObject,
	"clEnqueueWriteBuffer": &clEnqueueWriteBuffer, "clEnqueueReadBuffer": &clEnqueueReadBuffer,
	"clEnqueueNDRangeKernel": &clEnqueueNDRangeKernel, "clFinish": &clFinish,
}

// ErrNoDriver is wrapped by the reason why this machine has no OpenCL.
var ErrNoDriver = errors.New("there is no OpenCL here")

// load loads the library, once.
var load = sync.OnceValue(func() error {
	find, err := open("libOpenCL.so.1")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoDriver, err)
	}
	for name, f := range functions {
		at, err := find(name)
		if err != nil {
			return fmt.Errorf("%w: it lacks %s: %w", ErrNoDriver, name, err)
		}
		purego.RegisterFunc(f, at)
	}
	return nil
})

// Error is what a driver answers to a call.
type Error struct {
	What string
	Code int32 // of the standard, such as -4 for memory that cannot be had
	Log  string
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("OpenCL: %s: error %d", e.What, e.Code)
	if name, ok := codes[e.Code]; ok {
		text += " (" + name + ")"
	}
	if e.Log != "" {
		text += ": " + e.Log
	}
	return text
}

// codes are names of the standard.
var codes = map[int32]string{
	-2: "CL_DEVICE_NOT_AVAILABLE", -3: "CL_COMPILER_NOT_AVAILABLE", -4: "CL_MEM_OBJECT_ALLOCATION_FAILURE",
	-5: "CL_OUT_OF_RESOURCES", -6: "CL_OUT_OF_HOST_MEMORY", -11: "CL_BUILD_PROGRAM_FAILURE",
	-36: "CL_INVALID_COMMAND_QUEUE", -54: "CL_INVALID_WORK_GROUP_SIZE", -61: "CL_INVALID_BUFFER_SIZE",
	-1001: "no driver is installed",
}

func failed(what string, code int32) error {
	if code == 0 {
		return nil
	}
	return &Error{What: what, Code: code}
}
