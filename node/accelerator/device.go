package accelerator

import (
	"context"
	"errors"
	"maps"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Device takes the steps of units of one job on a device. It implements train.Device. It starts its child with the
// first unit, and again with the next one after a failure; after maxFailures in a row it is of no use any more.
type Device struct {
	ctx     context.Context
	options Options
	at      int // of the list of devices
	program *program.Program
	frozen  map[string]bool // inputs that never change
	failed  func(error)
	turn    chan struct{} // holds one value while no unit is computed

	runner   *Runner // nil: none is there
	failures int
}

var _ train.Device = (*Device)(nil)

// maxFailures is how many units in a row may fail on a device.
const maxFailures = 3

// New returns the device at a place of List for the steps of a program. It ends with the context. failed gets the
// errors after which the kernels compute a unit.
func New(ctx context.Context, o Options, at int, step *program.Program, failed func(error)) *Device {
	d := &Device{ctx: ctx, options: o, at: at, program: step, frozen: map[string]bool{},
		failed: failed, turn: make(chan struct{}, 1)}
	for _, n := range train.Frozen(step) {
		d.frozen[train.Param+n] = true
	}
	d.turn <- struct{}{}
	return d
}

// Take implements train.Device.
func (d *Device) Take() bool {
	select {
	case <-d.turn:
	case <-d.ctx.Done():
		return false
	}
	if d.failures >= maxFailures {
		d.Give()
		return false
	}
	return true
}

// Give implements train.Device.
func (d *Device) Give() { d.turn <- struct{}{} }

// Begin implements train.Device.
func (d *Device) Begin(in map[string]*tensor.Tensor, _ int) error { return d.report(d.begin(in)) }

func (d *Device) begin(in map[string]*tensor.Tensor) (err error) {
	known := d.runner != nil // it has the frozen tensors
	if !known {
		d.runner, err = NewRunner(d.ctx, d.options, d.at, d.program, train.StateNames(d.program))
		if err != nil {
			d.runner = nil
			return err
		}
	}
	put := maps.Clone(in)
	maps.DeleteFunc(put, func(name string, _ *tensor.Tensor) bool { return known && d.frozen[name] })
	return d.runner.Put(put)
}

// Step implements train.Device.
func (d *Device) Step(in, out map[string]*tensor.Tensor) error {
	if d.runner == nil {
		return errNoUnit
	}
	return d.report(d.runner.Run(1, in, out))
}

// State implements train.Device.
func (d *Device) State(into map[string]*tensor.Tensor) error {
	if d.runner == nil {
		return errNoUnit
	}
	err := d.report(d.runner.Get(into))
	if err == nil {
		d.failures = 0
	}
	return err
}

var errNoUnit = errors.New("accelerator: no unit was begun")

// report ends the child after an error: it is of no use for the next unit.
func (d *Device) report(err error) error {
	if err != nil {
		d.Close()
		d.failures++
		if d.ctx.Err() == nil {
			d.failed(err)
		}
	}
	return err
}

// Close ends the child.
func (d *Device) Close() {
	if d.runner != nil {
		d.runner.Close()
		d.runner = nil
	}
}
