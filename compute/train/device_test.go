package train_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// copies is a device of the kernels themselves, on tensors of its own.
type copies struct {
	task   *train.Task
	in     map[string]*tensor.Tensor
	out    map[string]*tensor.Tensor
	steps  int
	fails  int // the step that fails, from 1; 0: none
	absent bool
}

func (c *copies) Take() bool { return !c.absent }
func (c *copies) Give()      {}

func (c *copies) Begin(in map[string]*tensor.Tensor, _ int) error {
	c.in = map[string]*tensor.Tensor{}
	for n, t := range in {
		c.in[n] = t.Clone()
	}
	return nil
}

var errDevice = errors.New("the device is gone")

func (c *copies) Step(in, out map[string]*tensor.Tensor) (err error) {
	if c.steps++; c.steps == c.fails {
		return errDevice
	}
	for n, t := range in {
		c.in[n] = t.Clone()
	}
	if c.out, err = c.task.Exec.Run(c.in); err != nil {
		return err
	}
	for n, t := range out {
		copy(t.Bytes(), c.out[n].Bytes())
	}
	for _, n := range train.StateNames(c.task.Step) {
		c.in[n] = c.out[n]
	}
	return nil
}

func (c *copies) State(into map[string]*tensor.Tensor) error {
	for n, t := range into {
		copy(t.Bytes(), c.in[n].Bytes())
	}
	return nil
}

// TestUnitOnADevice demands the result of the kernels from a unit on a device: also from one that fails in the middle
// or is not there, and from a unit that continues.
func TestUnitOnADevice(t *testing.T) {
	task, base := newTask(t, tiny, 1)
	var half train.Progress
	want, err := task.Resume(base, 1, nil, false, nil, func(p train.Progress) error {
		if p.Step == 2 {
			half = p
			half.State = nil
			for _, x := range p.State {
				half.State = append(half.State, x.Clone())
			}
			half.Segments, half.Losses = slices.Clone(p.Segments), slices.Clone(p.Losses)
			half.Norms = slices.Clone(p.Norms)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		device copies
		from   *train.Progress
	}{
		"whole": {}, "fails": {device: copies{fails: 3}}, "absent": {device: copies{absent: true}},
		"continues": {from: &half},
	} {
		t.Run(name, func(t *testing.T) {
			d := c.device
			d.task = task
			task.Device = &d
			defer func() { task.Device = nil }()
			states := 0
			got, err := task.Resume(base, 1, nil, false, c.from, func(p train.Progress) error {
				if states++; p.Fetch == nil || p.Fetch() != nil {
					t.Error("the state cannot be fetched")
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Segments, want.Segments) || !slices.Equal(got.Losses, want.Losses) ||
				!slices.Equal(got.Norms, want.Norms) || !slices.Equal(train.Roots(got.End), train.Roots(want.End)) {
				t.Error("the result is another")
			}
			if c.device.absent != (d.steps == 0) {
				t.Errorf("the device took %d steps", d.steps)
			}
		})
	}
	task.Device = &copies{task: task}
	if _, err := task.Run(base, 1, nil, func(uint32, float32) error { return errDevice }); !errors.Is(err, errDevice) {
		t.Errorf("%v, want the error of the observer", err)
	}
}
