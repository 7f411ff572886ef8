// Package shared is the device of a process: the one that admission chose, for all parties and jobs of the process. It
// declares the device to the network, has the rate of the machine measured there, and tells what becomes of it. How
// units are computed there is package accelerator's.
package shared

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/accelerator/admission"
)

// Device is what the exact units of a process are computed on: a device, or the processor.
type Device struct {
	ctx      context.Context
	end      context.CancelFunc
	options  admission.Options
	admitted *admission.Admitted // nil: the processor computes
	why      string              // there is none although the owner asked for one

	mu     sync.Mutex
	jobs   map[canon.Digest]*accelerator.Device // by program
	failed int                                  // units
	latest string                               // error

	rating  sync.Mutex // one measurement at a time
	measure *measure   // nil: none is prepared
}

// Open admits the device that an owner chose, until it is closed: an *accelerator.Error says why it cannot be used.
// With an automatic choice the processor computes then. The context is that of the admission alone.
func Open(ctx context.Context, o admission.Options) (*Device, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	d := &Device{options: o, jobs: map[canon.Digest]*accelerator.Device{}}
	d.ctx, d.end = context.WithCancel(context.WithoutCancel(ctx))
	if o.Choice.Processor() {
		return d, nil
	}
	a, err := admission.Admit(ctx, o)
	refused, ok := errors.AsType[*accelerator.Error](err)
	switch {
	case err == nil:
		d.admitted = a
		o.Say(fmt.Sprintf("%s computes the units", a.Name))
	case ok && o.Choice.Automatic():
		d.why = refused.Error()
		o.Say("the processor computes the units: " + d.why)
	default:
		d.end()
		return nil, err
	}
	return d, nil
}

// For returns the device for the steps of a program; nil: the processor computes them. failed gets the errors after
// which the processor computes a unit.
func (d *Device) For(step *program.Program, failed func(error)) train.Device {
	if d == nil || d.admitted == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := step.Digest()
	x := d.jobs[key]
	if x == nil {
		x = accelerator.New(d.ctx, d.options.Child, d.admitted.At, step, func(err error) {
			d.mu.Lock()
			d.failed, d.latest = d.failed+1, err.Error()
			d.mu.Unlock()
			failed(err)
		})
		d.jobs[key] = x
	}
	return x
}

// Close ends the children of the device. No unit is computed any more.
func (d *Device) Close() {
	defer d.end()
	d.rating.Lock()
	d.endMeasure()
	d.rating.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, x := range d.jobs {
		if x.Take() {
			x.Close()
			x.Give()
		}
	}
}
