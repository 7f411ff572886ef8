package opencl

import (
	"fmt"
	"strings"
	"unsafe"

	"github.com/starling-network/starling/compute/device"
)

// Device is a device of a driver. It implements device.Device once it is opened.
type Device struct {
	device.Capabilities
	id, context, queue uintptr
}

// most is the number of platforms, and of devices of one, that are looked at.
const most = 64

// Devices lists the devices of all drivers, in their order.
func Devices() ([]*Device, error) {
	if err := load(); err != nil {
		return nil, err
	}
	var platforms, ids [most]uintptr
	var n, k uint32
	if code := clGetPlatformIDs(most, &platforms[0], &n); code != 0 {
		return nil, fmt.Errorf("%w: %w", ErrNoDriver, failed("the platforms", code))
	}
	var list []*Device
	for _, p := range platforms[:min(n, most)] {
		const all, none = 0xFFFFFFFF, -1 // CL_DEVICE_TYPE_ALL, CL_DEVICE_NOT_FOUND
		code := clGetDeviceIDs(p, all, most, &ids[0], &k)
		if code == none {
			continue
		}
		if code != 0 {
			return nil, failed("the devices of a platform", code)
		}
		for _, id := range ids[:min(k, most)] {
			list = append(list, &Device{Capabilities: capabilities(id), id: id})
		}
	}
	return list, nil
}

// Questions of clGetDeviceInfo.
const (
	infoType         = 0x1000
	infoGroup        = 0x1004
	infoBuffer       = 0x1010
	infoSingle       = 0x101B
	infoMemory       = 0x101F
	infoLittleEndian = 0x1026
	infoName         = 0x102B
	infoDriver       = 0x102D
	infoDouble       = 0x1032
)

// Bits of infoSingle and infoDouble.
const (
	subnormals = 1 << 0
	special    = 1 << 1
	nearest    = 1 << 2
	fused      = 1 << 5
	rounded    = 1 << 7
)

// typeProcessor is the bit of infoType of a processor.
const typeProcessor = 1 << 1

// capabilities asks a driver about a device. A question without an answer counts as no.
func capabilities(id uintptr) device.Capabilities {
	number := func(what uint32, size uintptr) (x uint64) {
		if clGetDeviceInfo(id, what, size, unsafe.Pointer(&x), nil) != 0 {
			return 0
		}
		return x
	}
	text := func(what uint32) string {
		var got uintptr
		b := make([]byte, 1024)
		if clGetDeviceInfo(id, what, uintptr(len(b)), unsafe.Pointer(&b[0]), &got) != 0 {
			return ""
		}
		return strings.TrimSpace(strings.TrimRight(string(b[:min(int(got), len(b))]), "\x00"))
	}
	single, double := number(infoSingle, 8), number(infoDouble, 8)
	const whole = subnormals | special | nearest | fused
	return device.Capabilities{
		Name: text(infoName), Driver: text(infoDriver), Memory: int64(number(infoMemory, 8)),
		Buffer: int64(number(infoBuffer, 8)), Group: int(number(infoGroup, unsafe.Sizeof(uintptr(0)))),
		Subnormals: single&subnormals != 0, Special: single&special != 0, Fused: single&fused != 0,
		Rounded: single&rounded != 0, Double: double&whole == whole, LittleEndian: number(infoLittleEndian, 4) != 0,
		Processor: number(infoType, 8)&typeProcessor != 0,
	}
}

// Open makes the device ready. Close ends that.
func (d *Device) Open() error {
	var code int32
	if d.context = clCreateContext(nil, 1, &d.id, 0, 0, &code); code != 0 {
		return failed("a context on "+d.Name, code)
	}
	if d.queue = clCreateCommandQueue(d.context, d.id, 0, &code); code != 0 {
		clReleaseContext(d.context)
		return failed("a queue on "+d.Name, code)
	}
	return nil
}

// Close gives back what Open made.
func (d *Device) Close() {
	clReleaseCommandQueue(d.queue)
	clReleaseContext(d.context)
}

// Build implements device.Device.
func (d *Device) Build(source string) (device.Code, error) {
	var code int32
	text, size := unsafe.StringData(source), uintptr(len(source))
	c := &compiled{device: d, kernels: map[string]uintptr{}}
	if c.id = clCreateProgramWithSrc(d.context, 1, &text, &size, &code); code != 0 {
		return nil, failed("a program", code)
	}
	if code = clBuildProgram(c.id, 1, &d.id, device.Options, 0, 0); code != 0 {
		err := &Error{What: "compiling the kernels", Code: code, Log: c.log()}
		c.Free()
		return nil, err
	}
	return c, nil
}

// Allocate implements device.Device.
func (d *Device) Allocate(bytes int) (device.Buffer, error) {
	if int64(bytes) > d.Buffer {
		return nil, fmt.Errorf("%s allows buffers of %d bytes, and the program needs one of %d: train smaller batches",
			d.Name, d.Buffer, bytes)
	}
	var code int32
	b := buffer{device: d}
	if b.id = clCreateBuffer(d.context, 1, uintptr(bytes), nil, &code); code != 0 { // CL_MEM_READ_WRITE
		return nil, failed(fmt.Sprintf("a buffer of %d bytes", bytes), code)
	}
	return b, nil
}

// program is compiled kernels.
type compiled struct {
	device  *Device
	id      uintptr
	kernels map[string]uintptr
}

// mostLog is how many bytes of the output of a compiler are shown.
const mostLog = 4 << 10

func (p *compiled) log() string {
	var got uintptr
	b := make([]byte, 1<<20)
	if clGetProgramBuildInfo(p.id, p.device.id, 0x1183, uintptr(len(b)), &b[0], &got) != 0 {
		return ""
	}
	return strings.TrimSpace(strings.TrimRight(string(b[:min(int(got), mostLog)]), "\x00"))
}

// kernel returns a kernel by its name.
func (p *compiled) kernel(name string) (uintptr, error) {
	k, ok := p.kernels[name]
	if !ok {
		var code int32
		if k = clCreateKernel(p.id, name, &code); code != 0 {
			return 0, failed("kernel "+name, code)
		}
		p.kernels[name] = k
	}
	return k, nil
}

// Start implements device.Code.
func (p *compiled) Start(l device.Launch, memory, table device.Buffer) error {
	k, err := p.kernel(l.Kernel)
	if err != nil {
		return err
	}
	m, t, at := memory.(buffer).id, table.(buffer).id, int64(l.At)
	for i, value := range []unsafe.Pointer{unsafe.Pointer(&m), unsafe.Pointer(&t), unsafe.Pointer(&at)} {
		if code := clSetKernelArg(k, uint32(i), 8, value); code != 0 {
			return failed(fmt.Sprintf("argument %d of %s", i, l.Kernel), code)
		}
	}
	var global, local [3]uintptr
	for i := range global {
		global[i], local[i] = uintptr(l.Global[i]), uintptr(l.Local[i])
	}
	return failed("starting "+l.Kernel, clEnqueueNDRangeKernel(p.device.queue, k, 3, nil, &global[0], &local[0], 0, 0, 0))
}

// Free implements device.Code.
func (p *compiled) Free() {
	for _, k := range p.kernels {
		clReleaseKernel(k)
	}
	clReleaseProgram(p.id)
}

// buffer is memory of a device.
type buffer struct {
	device *Device
	id     uintptr
}

// Read implements device.Buffer.
func (b buffer) Read(offset int, into []byte) error {
	return failed("reading from the device", clEnqueueReadBuffer(b.device.queue, b.id, 1, uintptr(offset),
		uintptr(len(into)), unsafe.Pointer(&into[0]), 0, 0, 0))
}

// Write implements device.Buffer.
func (b buffer) Write(offset int, from []byte) error {
	return failed("writing to the device", clEnqueueWriteBuffer(b.device.queue, b.id, 1, uintptr(offset),
		uintptr(len(from)), unsafe.Pointer(&from[0]), 0, 0, 0))
}

// Free implements device.Buffer.
func (b buffer) Free() { clReleaseMemObject(b.id) }
