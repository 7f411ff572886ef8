// Package admission decides which device of this machine computes exact units: one that its owner allows, that has what
// exact results need, and that passes the comparison suite (compute/device/suite). It keeps a record of the
// devices that passed, so that the suite runs again only after a change. It computes no units.
package admission

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Choice is what an owner lets units be computed on. It is the value of a flag; the zero value is the processor.
type Choice struct {
	word string // auto or opencl; "": the processor
	at   int    // with opencl: 1 + the number of the device; 0: the first that is exact
}

// Words are the values of a Choice.
const Words = "cpu, auto, opencl or opencl:N"

// The words of a Choice.
const (
	processor = "cpu"
	automatic = "auto"
	openCL    = "opencl"
)

// most is the highest number of a device.
const most = 1 << 12

var errChoice = errors.New("use " + Words)

// Set implements pflag.Value.
func (c *Choice) Set(text string) error {
	word, number, numbered := strings.Cut(text, ":")
	switch text {
	case processor:
		*c = Choice{}
		return nil
	case automatic:
		*c = Choice{word: automatic}
		return nil
	case openCL:
		*c = Choice{word: openCL}
		return nil
	case "gpu":
		return errors.New("gpu does not name the device that computes: use opencl for a GPU that is exact (starling " +
			"bench device), or auto")
	case "apple":
		return errors.New("a processor of Apple declares itself: use cpu")
	}
	at, err := strconv.ParseUint(number, 10, 32)
	if word != openCL || !numbered || err != nil || at > most {
		return errChoice
	}
	*c = Choice{openCL, int(at) + 1}
	return nil
}

// String implements pflag.Value.
func (c *Choice) String() string {
	switch {
	case c.word == "":
		return processor
	case c.at > 0:
		return fmt.Sprintf("%s:%d", openCL, c.at-1)
	}
	return c.word
}

// Type implements pflag.Value.
func (*Choice) Type() string { return "device" }

// Processor says whether the processor is chosen.
func (c Choice) Processor() bool { return c.word == "" }

// Automatic says whether the processor computes where no GPU is exact.
func (c Choice) Automatic() bool { return c.word == automatic }
