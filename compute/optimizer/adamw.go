package optimizer

import (
	"fmt"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// AdamW holds the constants of the optimizer (Loshchilov and Hutter 2019). Of all but the first three see Common.
type AdamW struct {
	Beta1, Beta2, Eps, WeightDecay, MaxGradNorm float64

	DecayAll bool
	Proximal float64
	Storage  Storage
}

// Descent are the constants with which AdamW is gradient descent, p - lr*g, without clipping and decay: the first
// moment is the gradient, and the second stays zero.
var Descent = AdamW{Beta2: 1, Eps: 1}

// Check implements Optimizer.
func (o AdamW) Check() error {
	if o == Descent {
		return nil
	}
	if !(o.Beta1 >= 0 && o.Beta1 < 1 && o.Beta2 >= 0 && o.Beta2 < 1) {
		return fmt.Errorf("%w: betas %g and %g must be at least 0 and below 1", ErrInvalid, o.Beta1, o.Beta2)
	}
	if !(o.Eps > 0 && o.Eps < 1) {
		return fmt.Errorf("%w: eps %g must be above 0 and below 1", ErrInvalid, o.Eps)
	}
	return o.common().check()
}

func (o AdamW) common() Common {
	return Common{o.WeightDecay, o.MaxGradNorm, o.DecayAll, o.Proximal, o.Storage}
}

func (AdamW) remembers(t Tensor) map[string]tensor.Shape {
	return map[string]tensor.Shape{First: t.Shape, Second: t.Shape}
}

func (o AdamW) next(s *Step, t Tensor, p, g, scale program.Value, before map[string]program.Value) (program.Value,
	map[string]program.Value) {
	m := s.keep(s.b.Moment(program.AdamM, before[First], g, scale, float32(o.Beta1)))
	v := s.keep(s.b.Moment(program.AdamV, before[Second], g, scale, float32(o.Beta2)))
	p = s.keep(s.b.AdamP(p, m, v, s.LR, s.C1, s.C2, float32(o.Eps), float32(o.common().decay(t))))
	return p, map[string]program.Value{First: m, Second: v}
}
