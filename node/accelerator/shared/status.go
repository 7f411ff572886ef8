package shared

import (
	"cmp"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/protocol/registry"
)

// Status is what a process says of its device.
type Status struct {
	Uses   string    `json:"uses"`                // cpu, or opencl:N
	Name   string    `json:"name"`                // of the card; of the processor its kernels
	Driver string    `json:"driver,omitempty"`    // its version
	Memory int64     `json:"memory_bytes"`        // of the card; 0: the processor
	Passed time.Time `json:"passed_at,omitzero"`  // when it passed the comparison suite
	Units  int       `json:"units"`               // that the device computed
	Failed int       `json:"failed_units"`        // that it failed at, and the processor computed
	Faulty bool      `json:"faulty"`              // it computed other bits than the processor, and is not used any more
	Error  string    `json:"error,omitempty"`     // the latest
	Why    string    `json:"processor,omitempty"` // why the processor computes although a device was asked for
}

// Status returns what there is to say.
func (d *Device) Status() Status {
	a := d.using()
	d.mu.Lock()
	defer d.mu.Unlock()
	s := Status{Uses: "cpu", Name: Processor(), Why: d.why, Units: d.units, Failed: d.failed, Error: d.latest,
		Faulty: d.faulty}
	if d.faulty {
		s.Why = d.latest
	}
	if a != nil {
		s.Uses, s.Name, s.Driver, s.Memory = fmt.Sprintf("opencl:%d", a.At), a.Name, a.Driver, a.Memory
		s.Passed = a.Passed
	}
	return s
}

// Processor describes this machine without a device.
func Processor() string {
	return fmt.Sprintf("%s/%s, %d threads, %s kernels", runtime.GOOS, runtime.GOARCH, kernel.Cores, kernel.Active())
}

// Declare returns the declaration of the machine to the network: its words, and its hardware with the kind and the
// memory of the device. nil declares the processor.
func (d *Device) Declare(h registry.Hardware) (words string, _ registry.Hardware) {
	h.Kind = registry.CPU
	if runtime.GOOS == "darwin" && runtime.GOARCH == "arm64" {
		h.Kind = registry.Apple
	}
	a := d.using()
	if a == nil {
		return Processor(), h
	}
	words = fmt.Sprintf("%s by OpenCL, driver %s; %s", a.Name, a.Driver, Processor())
	for len(words) > registry.MaxDevice { // of which no character is cut in two
		words = strings.ToValidUTF8(words[:registry.MaxDevice], "")
	}
	if a.Processor {
		return words, h
	}
	h.Kind, h.Devices = registry.GPU, max(h.Devices, 1)
	h.Memory = min(uint64(a.Memory>>20), cmp.Or(h.Memory, uint64(a.Memory>>20)))
	return words, h
}
