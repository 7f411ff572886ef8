// Package crosscheck recomputes one drawn step of each unit of a device on the processor, before any party commits to
// the unit: memory without error correction flips bits now and then, and a wrong unit costs its worker stake. It finds
// a device that is wrong in every step, or in many; a single wrong step only if it is the one that was drawn.
package crosscheck

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// ErrDiffers is wrapped by the error of a step that the device computed with other bits than the processor.
var ErrDiffers = errors.New("the device computed other bits than the processor")

// Device is a device whose units are checked. It implements train.Device.
type Device struct {
	train.Device
	task  *train.Task
	names []string // of the state

	in    map[string]*tensor.Tensor // of the unit, until the drawn step is over
	step  int                       // the next
	drawn int
}

// New returns a device that checks another one by the kernels of a task.
func New(d train.Device, task *train.Task) *Device {
	return &Device{Device: d, task: task, names: train.StateNames(task.Step)}
}

// Begin implements train.Device.
func (d *Device) Begin(in map[string]*tensor.Tensor, steps int) error {
	d.in, d.step, d.drawn = maps.Clone(in), 0, drawn(in, steps)
	return d.Device.Begin(in, steps)
}

// drawn is the step of a unit that is checked, from 0. It follows from the tokens of the first step, and so from the
// seed of the job, the round and the unit.
func drawn(in map[string]*tensor.Tensor, steps int) int {
	var tokens []byte
	if t := in["tokens"]; t != nil {
		tokens = t.Bytes()
	}
	d := canon.Sum("starling/device/check/1", tokens)
	return int(binary.BigEndian.Uint64(d[:]) % uint64(max(steps, 1)))
}

// Step implements train.Device. Its error wraps ErrDiffers if the step is the drawn one and is wrong.
func (d *Device) Step(in, out map[string]*tensor.Tensor) error {
	if d.step++; d.step-1 != d.drawn {
		return d.Device.Step(in, out)
	}
	maps.Copy(d.in, in)
	if d.drawn > 0 { // before the first step the tensors have the state
		state := map[string]*tensor.Tensor{}
		for _, n := range d.names {
			state[n] = d.in[n]
		}
		if err := d.Device.State(state); err != nil {
			return err
		}
	}
	if err := d.Device.Step(in, out); err != nil {
		return err
	}
	err := d.compare(out)
	d.task.Exec.Release()
	d.in = nil
	return err
}

// compare takes the step on the processor, and compares the outputs.
func (d *Device) compare(out map[string]*tensor.Tensor) error {
	want := map[string]*tensor.Tensor{}
	for name, t := range out {
		want[name] = tensor.New(t.Shape)
	}
	for _, n := range d.names {
		if want[n] = d.in[n]; !d.task.Exec.Shares(n, n) {
			want[n] = tensor.New(d.in[n].Shape)
		}
	}
	if err := d.task.Exec.RunInto(d.in, want); err != nil {
		return err
	}
	for name, t := range out {
		if err := same(name, t.Clone(), want[name]); err != nil {
			return err
		}
	}
	for _, n := range d.names {
		got := tensor.New(want[n].Shape)
		if err := d.Device.State(map[string]*tensor.Tensor{n: got}); err != nil {
			return err
		}
		if err := same(n, got, want[n]); err != nil {
			return err
		}
	}
	return nil
}

// same compares the bits of two tensors, of which it makes the NaN canonical.
func same(name string, got, want *tensor.Tensor) error {
	got.Canonicalize()
	want.Canonicalize()
	if bytes.Equal(got.Bytes(), want.Bytes()) {
		return nil
	}
	at := 0
	for got.Bytes()[at] == want.Bytes()[at] {
		at++
	}
	size := want.Shape.DType.Size()
	at -= at % size
	return fmt.Errorf("%w: element %d of %q has the bytes %x, not %x", ErrDiffers, at/size, name, got.Bytes()[at:at+size],
		want.Bytes()[at:at+size])
}
