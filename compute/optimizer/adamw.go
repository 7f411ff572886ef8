package optimizer

import (
	"fmt"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// AdamW holds the constants of the optimizer (Loshchilov and Hutter 2019). Of all but the first three see Common.
//
// With Nesterov the step is that of NAdam (Dozat 2016) of a constant momentum: the first moment is taken one step
// ahead, beta1*m/(1-beta1^(t+1)) + (1-beta1)*g/(1-beta1^t). It corrects gradients that are late (Ajanthan et al. 2025,
// arXiv 2505.01099), of which it takes the share 1-beta1.
type AdamW struct {
	Beta1, Beta2, Eps, WeightDecay, MaxGradNorm float64

	Nesterov bool
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
	toward, c1 := m, s.C1
	if o.Nesterov {
		toward, c1 = o.ahead(s, m, g, scale), s.scalar(1)
	}
	p = s.keep(s.b.AdamP(p, toward, v, s.LR, c1, s.C2, float32(o.Eps), float32(o.common().decay(t))))
	return p, map[string]program.Value{First: m, Second: v}
}

// ahead is the first moment one step ahead, without bias. C1 is 1/(1-beta1^t), so beta1^t is 1 - 1/C1.
func (o AdamW) ahead(s *Step, m, g, scale program.Value) program.Value {
	one, beta := s.scalar(1), s.scalar(o.Beta1)
	power := s.apply(program.Sub, one, s.apply(program.Div, one, s.C1))
	next := s.apply(program.Div, beta, s.apply(program.Sub, one, s.apply(program.Mul, beta, power)))
	now := s.apply(program.Mul, s.apply(program.Mul, s.apply(program.Sub, one, beta), s.C1), scale)
	return s.apply(program.Add, s.times(m, next), s.times(g, now))
}
