package registry

import (
	"fmt"
	"math/bits"
)

// Kind of a device.
type Kind uint8

// Kinds are part of the format.
const (
	CPU   Kind = 0
	GPU   Kind = 1
	Apple Kind = 2
)

// Hardware is the declared machine of a participant. Only its rate is measured: see Measurement.
type Hardware struct {
	Kind         Kind   `cbor:"1,keyasint"`
	Memory       uint64 `cbor:"2,keyasint"` // MiB that a job may use: of the accelerator, or of the machine without one
	Upload       uint64 `cbor:"3,keyasint"` // kbit/s that it promises to its peers
	Region       string `cbor:"4,keyasint"` // such as "eu-north": two regions are near if equal
	Jurisdiction string `cbor:"5,keyasint"` // ISO 3166 code of the country, in capitals
	// failure domain: machines with one domain fail together. Empty: one domain that all without a name share
	Domain  string `cbor:"6,keyasint"`
	Disk    uint64 `cbor:"7,keyasint"`  // MiB that blobs of jobs may take
	Cores   uint32 `cbor:"8,keyasint"`  // of the processor, that a job may use
	Devices uint32 `cbor:"9,keyasint"`  // accelerators
	Model   string `cbor:"10,keyasint"` // of the accelerators, such as "h100"
}

// MaxPlace is the most bytes of the name of a region, a jurisdiction, a failure domain or a model.
const MaxPlace = 64

func (h Hardware) check() error {
	if h.Kind > Apple {
		return fmt.Errorf("%w: device of kind %d is not known", ErrInvalid, h.Kind)
	}
	for _, place := range []string{h.Region, h.Jurisdiction, h.Domain, h.Model} {
		if len(place) > MaxPlace {
			return fmt.Errorf("%w: a place or a model of %d bytes, at most %d", ErrInvalid, len(place), MaxPlace)
		}
	}
	return nil
}

// Class of a machine, which sets its pay. It follows from the declaration and the measured rate.
type Class uint8

// Classes are part of the format.
const (
	Unrated      Class = 0 // its rate was never measured
	Processor    Class = 1 // paid by its rate
	AppleSilicon Class = 2
	Consumer     Class = 3
	Professional Class = 4
	Datacentre   Class = 5
)

var classNames = [...]string{Unrated: "unrated", Processor: "cpu", AppleSilicon: "apple", Consumer: "consumer",
	Professional: "professional", Datacentre: "datacentre"}

// String names a class as job files do.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// ParseClass is the inverse of String.
func ParseClass(name string) (Class, bool) {
	for c, n := range classNames {
		if n == name {
			return Class(c), true
		}
	}
	return 0, false
}

// ClassRule is the requirement of a class, and the weight of its work when rewards are shared.
type ClassRule struct {
	Class         Class  `cbor:"1,keyasint"`
	Kind          Kind   `cbor:"2,keyasint"`
	Memory        uint64 `cbor:"3,keyasint"` // MiB, at least
	Rate          uint64 `cbor:"4,keyasint"` // measured operations a second, at least
	MultiplierPPM uint32 `cbor:"5,keyasint"`
}

// Class is the first class of the parameters whose rule the machine meets. A machine that meets none is a processor,
// whatever it declares.
func (p Participant) Class(params Params) Class {
	if p.Rate == 0 {
		return Unrated
	}
	for _, r := range params.Classes {
		if r.Kind == p.Hardware.Kind && p.Hardware.Memory >= r.Memory && p.Rate >= r.Rate {
			return r.Class
		}
	}
	return Processor
}

// MultiplierPPM is the weight of a unit of the participant's work when rewards are shared, in parts per million. A
// processor weighs its rate over Params.ProcessorRate, and at most 1; a machine that was never measured weighs
// nothing.
func (p Participant) MultiplierPPM(params Params) uint32 {
	c := p.Class(params)
	for _, r := range params.Classes {
		if r.Class == c {
			return r.MultiplierPPM
		}
	}
	if c == Unrated || p.Rate >= params.ProcessorRate {
		return uint32(min(p.Rate, 1)) * million
	}
	high, low := bits.Mul64(p.Rate, million)
	ppm, _ := bits.Div64(high, low, params.ProcessorRate)
	return uint32(ppm)
}
