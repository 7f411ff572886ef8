// Package shared is the device of a process: the one that admission chose, for all parties and jobs of the process. It
// declares the device to the network, has the rate of the machine measured there, and tells what becomes of it. How
// units are computed there is package accelerator's.
package shared

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/device"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/crosscheck"
	"github.com/starling-network/starling/node/accelerator"
	"github.com/starling-network/starling/node/accelerator/admission"
)

// Device is what the exact units of a process are computed on: a device, or the processor.
type Device struct {
	ctx      context.Context
	end      context.CancelFunc
	options  admission.Options
	changed  func()              // the declaration is another; nil: it does not matter
	admitted *admission.Admitted // nil: the processor computes
	why      string              // there is none although the owner asked for one

	mu     sync.Mutex
	jobs   map[canon.Digest]*accelerator.Device // by program
	units  int                                  // that it computed
	failed int                                  // that the processor computed in its place
	latest string                               // error
	faulty bool                                 // it is not used any more

	rating  sync.Mutex // one measurement at a time
	measure *measure   // nil: none is prepared
}

// Open admits the device that an owner chose, until it is closed: an *accelerator.Error says why it cannot be used.
// With an automatic choice the processor computes then. changed is called when the declaration becomes another; nil:
// it does not matter. The context is that of the admission alone.
func Open(ctx context.Context, o admission.Options, changed func()) (*Device, error) {
	if o.Say == nil {
		o.Say = func(string) {}
	}
	d := &Device{options: o, changed: changed, jobs: map[canon.Digest]*accelerator.Device{}}
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

// For returns the device for the units of a job; nil: the processor computes them. failed gets the errors after which
// it computes a unit, or all of them.
func (d *Device) For(task *train.Task, failed func(error)) train.Device {
	if d.using() == nil {
		return nil
	}
	report := func(err error) {
		d.mu.Lock()
		d.failed, d.latest = d.failed+1, err.Error()
		d.mu.Unlock()
		failed(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := task.Step.Digest()
	x := d.jobs[key]
	if x == nil {
		if err := d.fits(task); err != nil {
			d.latest = err.Error()
			failed(err)
			return nil
		}
		x = accelerator.New(d.ctx, d.options.Child, d.admitted.At, task.Step, report)
		d.jobs[key] = x
	}
	return &units{Device: crosscheck.New(x, task), on: x, all: d, report: report}
}

// fits says why the device cannot compute the program of a job: it lacks the numbers of its version of the numerics, or
// the memory. The error is an *accelerator.Error, of the memory with the number of examples that do fit.
func (d *Device) fits(task *train.Task) error {
	a := d.admitted
	if v := task.Step.Numerics; !slices.Contains(a.Numerics(), v) {
		return accelerator.Wrong(accelerator.CodeNumerics, a.Name+" has no numbers of 64 bits",
			fmt.Sprintf("the job is of version %d of the numerics, which needs them", v))
	}
	need, err := device.Need(task.Step, train.StateNames(task.Step))
	if err != nil || need <= a.Buffer {
		return err
	}
	var fixed int64 // what does not grow with the batch
	for _, in := range task.Step.Inputs() {
		fixed += int64(in.Shape.Bytes())
	}
	fit := "the weights and what the optimizer keeps leave no room"
	if n := (a.Buffer - fixed) * int64(task.Spec.Batch) / max(need-fixed, 1); n > 0 {
		fit = fmt.Sprintf("about %d examples of the %d in the batch of a worker fit", n, task.Spec.Batch)
	}
	return accelerator.Wrong(accelerator.CodeMemory, "the job does not fit into "+a.Name,
		fmt.Sprintf("it needs a buffer of %d MiB, and the driver allows %d; %s", need>>20, a.Buffer>>20, fit))
}

// using returns the device that is used; nil: the processor computes.
func (d *Device) using() *admission.Admitted {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.faulty {
		return nil
	}
	return d.admitted
}

// Rest ends the children of the device, which hold its memory, when they compute nothing: the next unit starts one
// again.
func (d *Device) Rest() {
	if d == nil {
		return
	}
	d.mu.Lock()
	jobs := slices.Collect(maps.Values(d.jobs))
	d.mu.Unlock()
	for _, x := range jobs {
		if x.Take() {
			x.Close()
			x.Give()
		}
	}
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
