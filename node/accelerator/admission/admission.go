package admission

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/device/suite"
	"github.com/starling-network/starling/node/accelerator"
)

// Options are what the owner of a machine chooses.
type Options struct {
	Choice Choice
	Child  accelerator.Options
	Record string       // file that keeps what passed; "": nothing is kept
	Say    func(string) // gets what happens
}

// Admitted is a device that computes exact units.
type Admitted struct {
	device.Capabilities
	At     int       // in the list of devices
	Passed time.Time // when it passed the suite
}

// Elements is how many numbers of each sort a device is compared on before it is used.
const Elements = 1 << 12

// machine is what admission asks the devices of a machine.
type machine interface {
	List(ctx context.Context) ([]device.Capabilities, error)
	Suite(ctx context.Context, at, elements int) (suite.Report, error)
	Digest() (canon.Digest, error) // of the program that computes
}

// Admit returns the device that is chosen, or the first that is exact: with opencl any, with auto any that is no
// processor. It runs the suite on a device without a record. An *accelerator.Error says why there is none.
func Admit(ctx context.Context, o Options) (*Admitted, error) {
	return admit(ctx, o, child{o.Child}, time.Now)
}

// child asks starling-device.
type child struct{ o accelerator.Options }

func (c child) List(ctx context.Context) ([]device.Capabilities, error) {
	return accelerator.List(ctx, c.o)
}

func (c child) Suite(ctx context.Context, at, elements int) (suite.Report, error) {
	return accelerator.Suite(ctx, c.o, at, elements, func(int, int, suite.Report) {})
}

func (c child) Digest() (canon.Digest, error) { return accelerator.Digest(c.o) }

func admit(ctx context.Context, o Options, m machine, now func() time.Time) (*Admitted, error) {
	list, err := m.List(ctx)
	if err != nil {
		return nil, err
	}
	if n := o.Choice.at; n > len(list) {
		return nil, accelerator.Wrong(accelerator.CodeNone, "there is no device "+o.Choice.String(),
			fmt.Sprintf("the drivers of this machine have %d", len(list)))
	}
	program, err := m.Digest()
	if err != nil {
		return nil, err
	}
	var why error
	for i, c := range list {
		if n := o.Choice.at; n > 0 && i != n-1 || o.Choice.Automatic() && c.Processor {
			continue
		}
		a, err := try(ctx, o, m, now, Admitted{Capabilities: c, At: i}, program)
		if err == nil || ctx.Err() != nil {
			return a, err
		}
		if why == nil { // the first is what the owner most likely means
			why = err
		}
	}
	switch {
	case why != nil:
		return nil, why
	case len(list) > 0:
		return nil, accelerator.Wrong(accelerator.CodeNone, "there is no GPU", "the drivers have processors alone, and the "+
			"kernels of starling are faster there; --device opencl uses them")
	}
	return nil, accelerator.Wrong(accelerator.CodeNone, "there is no device", "the drivers have none")
}

// try admits one device.
func try(ctx context.Context, o Options, m machine, now func() time.Time, a Admitted, program canon.Digest) (*Admitted,
	error) {
	if lacks := a.Missing(); lacks != "" {
		return nil, accelerator.Wrong(accelerator.CodeInexact, a.Name+" is not exact", "it has no "+lacks)
	}
	r, known := recordOf(a.Capabilities, program), read(o.Record)
	if passed, ok := known.of(r); ok {
		a.Passed = passed
		return &a, nil
	}
	o.Say(fmt.Sprintf("comparing %s with the processor, which takes a while once", a.Name))
	report, err := m.Suite(ctx, a.At, Elements)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, err
	case report.Differ() > 0:
		return nil, accelerator.Wrong(accelerator.CodeInexact, a.Name+" is not exact",
			fmt.Sprintf("%d of %d elements differ: %s", report.Differ(), report.Elements(), report.Failed()))
	}
	o.Say(fmt.Sprintf("%s is exact: none of %d elements differ", a.Name, report.Elements()))
	a.Passed = now().UTC().Truncate(time.Second)
	r.Passed, r.Elements = a.Passed, report.Elements()
	if err := known.with(r).write(o.Record); err != nil {
		return nil, errors.Join(errors.New("admission: the record of the device cannot be kept"), err)
	}
	return &a, nil
}
