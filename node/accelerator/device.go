package accelerator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

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
	layout  Layout
	frozen  map[string]bool // inputs that never change
	failed  func(error)
	turn    chan struct{} // holds one value while no unit is computed

	child    *child // nil: none is there
	failures int
}

var _ train.Device = (*Device)(nil)

// maxFailures is how many units in a row may fail on a device.
const maxFailures = 3

// New returns the device at a place of List for the steps of a program. It ends with the context. failed gets the
// errors after which the kernels compute a unit.
func New(ctx context.Context, o Options, at int, step *program.Program, failed func(error)) *Device {
	d := &Device{ctx: ctx, options: o, at: at, program: step, layout: LayoutOf(step), frozen: map[string]bool{},
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
func (d *Device) Begin(in map[string]*tensor.Tensor) error { return d.report(d.begin(in)) }

func (d *Device) begin(in map[string]*tensor.Tensor) error {
	known := d.child != nil // it has the frozen tensors
	if !known {
		c, err := start(d.ctx, d.options)
		if err != nil {
			return err
		}
		d.child = c
		if err := c.Fix(d.layout.Bytes); err != nil {
			return c.wrong(CodeFailed, "there is no memory to share", err.Error())
		}
		_, err = c.ask(Question{Kind: Open, Device: d.at, Program: d.program.Encode(), Carried: train.StateNames(d.program)})
		if err != nil {
			return err
		}
	}
	put := maps.Clone(in)
	maps.DeleteFunc(put, func(name string, _ *tensor.Tensor) bool { return known && d.frozen[name] })
	return d.put(Put, put, nil)
}

// put writes tensors to the memory that is shared, and asks a question about them and those wanted.
func (d *Device) put(kind string, in, out map[string]*tensor.Tensor) error {
	if d.child == nil {
		return errNoUnit
	}
	q := Question{Kind: kind, Put: slices.Sorted(maps.Keys(in)), Get: slices.Sorted(maps.Keys(out))}
	for _, name := range q.Put {
		if err := d.layout.In[name].Write(d.child.Memory, in[name]); err != nil {
			return d.child.wrong(CodeFailed, fmt.Sprintf("input %q cannot be shared", name), err.Error())
		}
	}
	if _, err := d.child.ask(q); err != nil {
		return err
	}
	for _, name := range q.Get {
		if err := d.layout.Out[name].Read(d.child.Memory, out[name]); err != nil {
			return d.child.wrong(CodeFailed, fmt.Sprintf("output %q cannot be shared", name), err.Error())
		}
	}
	return nil
}

// Step implements train.Device.
func (d *Device) Step(in, out map[string]*tensor.Tensor) error { return d.report(d.put(Step, in, out)) }

// State implements train.Device.
func (d *Device) State(into map[string]*tensor.Tensor) error {
	err := d.report(d.put(Get, nil, into))
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
	if d.child != nil {
		d.child.close()
		d.child = nil
	}
}

// admitted is how many numbers of each sort a device is compared on before it is used.
const admitted = 1 << 12

// Admit finds the first device that lacks nothing and whose results are those of the portable kernels. An *Error says
// why there is none.
func Admit(ctx context.Context, o Options, say func(string)) (at int, err error) {
	list, err := List(ctx, o)
	if err != nil {
		return 0, err
	}
	missing := "the drivers have none"
	for i, c := range list {
		if lacks := c.Missing(); lacks != "" {
			missing = fmt.Sprintf("%s has no %s", c.Name, lacks)
			continue
		}
		r, err := Suite(ctx, o, i, admitted)
		if err != nil {
			return 0, err
		}
		if r.Differ() == 0 {
			say(fmt.Sprintf("%s computes the units: none of %d elements differ", c.Name, r.Elements()))
			return i, nil
		}
		missing = fmt.Sprintf("%s differs in %d of %d elements: %s", c.Name, r.Differ(), r.Elements(), r.Failed())
	}
	if len(list) == 0 {
		return 0, wrong(CodeNone, "there is no device", missing)
	}
	return 0, wrong(CodeInexact, "no device is exact", missing)
}
