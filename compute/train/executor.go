package train

import (
	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

// Executor takes inner steps with other arithmetic than the kernels', such as a vendor's stack. Between Begin and
// State it holds the state of the unit. Its result is close to the exact execution, and proves nothing.
type Executor interface {
	// Begin takes the state that a unit starts from, in the order of Session.Tensors. It keeps none of the tensors.
	Begin(state []*tensor.Tensor) error
	// Step takes an inner step on tokens [Batch, Length+1], and returns its loss: mean cross-entropy in nats, before the
	// update, or 1 less the mean reward. dice is Spec.Dice; nil: the step draws nothing. The others are Spec.Scalars.
	Step(tokens []int32, dice *tensor.Tensor, lr, c1, c2 float32) (loss float32, err error)
	// State writes the state reached into tensors, in the order and of the shapes of Begin.
	State(into []*tensor.Tensor) error
}

// RunOn is Run on an executor, for a unit that receives no carried state: the same batches, schedule and commitments
// around another arithmetic.
func (t *Task) RunOn(x Executor, base *Checkpoint, unit uint32,
	observe func(step uint32, loss float32) error) (*Result, error) {
	s, err := t.Begin(base, unit, nil)
	if err != nil {
		return nil, err
	}
	s.on = x
	if err := x.Begin(s.Tensors()); err != nil {
		return nil, s.failed("start", err)
	}
	r := &Result{Segments: []canon.Digest{s.Root()}}
	if err := s.continueTo(t.Spec.StepsOf(unit), r, each(observe)); err != nil {
		return nil, err
	}
	r.Conclude(base.Params, base, unit)
	return r, nil
}

// advanceOn is Advance on the executor, which has the state until it is fetched.
func (s *Session) advanceOn(in map[string]*tensor.Tensor) (loss float32, err error) {
	loss, err = s.on.Step(in["tokens"].I32(), in["dice"], in["lr"].F32()[0], in["c1"].F32()[0], in["c2"].F32()[0])
	if err != nil {
		return 0, s.failed("execution", err)
	}
	s.step++
	return loss, nil
}

// fetch brings the state from the executor or the device, if there is one.
func (s *Session) fetch() error {
	if s.on == nil {
		return s.fetchFromDevice()
	}
	state := s.Tensors()
	if err := s.on.State(state); err != nil {
		return s.failed("state", err)
	}
	for _, t := range state {
		t.Canonicalize()
	}
	return nil
}
