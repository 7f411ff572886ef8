package train

import (
	"errors"

	"github.com/starling-network/starling/compute/data"
	"github.com/starling-network/starling/compute/tensor"
)

// Device takes inner steps with the bits of the kernels, and keeps the state from step to step.
type Device interface {
	// Take waits until no other unit is computed there; false: the device is of no use any more. Give ends it.
	Take() bool
	Give()
	// Begin sets all inputs, for some steps. Step may write to the tensors of the state; the others stay as they are.
	Begin(in map[string]*tensor.Tensor, steps int) error
	// Step sets some inputs, runs the program, and reads some outputs. The state after a step is that before the next.
	Step(in, out map[string]*tensor.Tensor) error
	// State reads the state.
	State(into map[string]*tensor.Tensor) error
}

// fromStep are the inputs of a program that each step sets, if it has them.
var fromStep = []string{"tokens", "lr", "c1", "c2", "dice"}

// advanceOnDevice is Advance on the device, which has the state until it is fetched.
func (s *Session) advanceOnDevice(in map[string]*tensor.Tensor) (loss float32, err error) {
	if !s.begun {
		if err := s.device.Begin(in, int(s.task.Spec.StepsOf(s.unit)-s.step)); err != nil {
			return 0, s.failed("start", err)
		}
		s.begun = true
	}
	set := map[string]*tensor.Tensor{}
	for _, n := range fromStep {
		if in[n] != nil {
			set[n] = in[n]
		}
	}
	got := map[string]*tensor.Tensor{"loss": s.out["loss"], "grad_norm": s.out["grad_norm"]}
	if err := s.device.Step(set, got); err != nil {
		return 0, s.failed("execution", err)
	}
	s.stale, s.step = true, s.step+1
	return s.out["loss"].F32()[0], nil
}

// fetchFromDevice brings the state from the device, if it is newer there.
func (s *Session) fetchFromDevice() error {
	if !s.stale {
		return nil
	}
	state := map[string]*tensor.Tensor{}
	for _, n := range s.names {
		state[n] = s.in[n]
	}
	if err := s.device.State(state); err != nil {
		return s.failed("state", err)
	}
	s.stale = false
	return nil
}

// onDevice executes a unit to the end of a segment on the device. false: it failed, or there is none, and the kernels
// have to compute the unit. Errors of the caller and of the corpus end the unit as they do with the kernels.
func (t *Task) onDevice(base *Checkpoint, unit, segment uint32, from []*tensor.Tensor, p *Progress,
	observe func(Progress) error) (r *Result, done bool, err error) {
	if t.Device == nil || !t.Device.Take() {
		return nil, false, nil
	}
	defer t.Device.Give()
	s, err := t.begin(base, unit, from, false)
	if err != nil {
		return nil, true, err
	}
	s.device = t.Device
	var stopped error
	r, err = s.execute(t.Spec.StepsTo(unit, segment), p, func(p Progress) error {
		stopped = observe(p)
		return stopped
	})
	return r, err == nil || stopped != nil || errors.Is(err, data.ErrBatch), err
}
