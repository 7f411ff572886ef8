package optimizer

import (
	"errors"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// SGD is gradient descent as PyTorch has it: g plus decay*p, then with a momentum b = momentum*b + g, of which the step
// is b or, with Nesterov, g + momentum*b; p - lr*step. It remembers b, and without momentum nothing.
type SGD struct {
	Common
	Momentum float64
	Nesterov bool
}

// Check implements Optimizer.
func (o SGD) Check() error { return errors.Join(share("momentum", o.Momentum), o.check()) }

func (o SGD) remembers(t Tensor) map[string]tensor.Shape {
	if o.Momentum == 0 {
		return nil
	}
	return map[string]tensor.Shape{First: t.Shape}
}

func (o SGD) next(s *Step, t Tensor, p, g, scale program.Value, before map[string]program.Value) (program.Value,
	map[string]program.Value) {
	step := s.decayed(s.times(g, scale), p, o.decay(t))
	if o.Momentum == 0 {
		return s.moved(p, step), nil
	}
	momentum := s.scalar(o.Momentum)
	buffer := s.apply(program.Add, s.times(before[First], momentum), step)
	if o.Nesterov {
		step = s.apply(program.Add, step, s.times(buffer, momentum))
	} else {
		step = buffer
	}
	return s.moved(p, step), map[string]program.Value{First: buffer}
}

// Lion steps by a sign (Chen et al. 2023, algorithm 2): of beta1*m + (1-beta1)*g, to which decay*p is added, and then
// m = beta2*m + (1-beta2)*g. It remembers m.
type Lion struct {
	Common
	Beta1, Beta2 float64
}

// Check implements Optimizer.
func (o Lion) Check() error {
	return errors.Join(share("beta1", o.Beta1), share("beta2", o.Beta2), o.check())
}

func (Lion) remembers(t Tensor) map[string]tensor.Shape {
	return map[string]tensor.Shape{First: t.Shape}
}

func (o Lion) next(s *Step, t Tensor, p, g, scale program.Value, before map[string]program.Value) (program.Value,
	map[string]program.Value) {
	toward := s.keep(s.b.Moment(program.AdamM, before[First], g, scale, float32(o.Beta1)))
	step := s.decayed(s.apply(program.Sign, toward), p, o.decay(t))
	m := s.keep(s.b.Moment(program.AdamM, before[First], g, scale, float32(o.Beta2)))
	return s.moved(p, step), map[string]program.Value{First: m}
}
