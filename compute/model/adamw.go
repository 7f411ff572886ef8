package model

import (
	"fmt"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// AdamW holds the constants of the optimizer (Loshchilov and Hutter 2019). Weight decay applies to tensors of two or
// more dimensions, with DecayAll to every tensor. MaxGradNorm bounds the norm of all gradients together; 0 is no bound.
type AdamW struct {
	Beta1, Beta2, Eps, WeightDecay, MaxGradNorm float64
	DecayAll                                    bool

	// Proximal pulls every tensor back to where it was when a unit began: the gradient of Proximal/2 * |w - begin|^2 is
	// added (FedProx, Li et al. 2020). 0 is none.
	Proximal float64
}

// Descent are the constants with which AdamW is gradient descent, p - lr*g, without clipping and decay: the first
// moment is the gradient, and the second stays zero.
var Descent = AdamW{Beta2: 1, Eps: 1}

func (o AdamW) check() error {
	if o == Descent {
		return nil
	}
	if !(o.Beta1 >= 0 && o.Beta1 < 1 && o.Beta2 >= 0 && o.Beta2 < 1) {
		return fmt.Errorf("%w: betas %g and %g must be at least 0 and below 1", ErrStep, o.Beta1, o.Beta2)
	}
	if !(o.Eps > 0 && o.Eps < 1) {
		return fmt.Errorf("%w: eps %g must be above 0 and below 1", ErrStep, o.Eps)
	}
	if !(o.Proximal >= 0 && o.Proximal <= 1e3) {
		return fmt.Errorf("%w: proximal %g must be in 0..1000", ErrStep, o.Proximal)
	}
	if !(o.WeightDecay >= 0 && o.WeightDecay <= 1 && o.MaxGradNorm >= 0 && o.MaxGradNorm <= 1e9) {
		return fmt.Errorf("%w: weight decay %g must be in 0..1, max grad norm %g in 0..1e9", ErrStep, o.WeightDecay,
			o.MaxGradNorm)
	}
	return nil
}

// update appends the optimizer to a program. The first error sticks; what is appended after it is never seen.
type update struct {
	b          *program.Builder
	o          AdamW
	lr, c1, c2 program.Value
	err        error
}

func (u *update) keep(v program.Value, err error) program.Value {
	if u.err == nil {
		u.err = err
	}
	return v
}

func (u *update) scalar(x float64) program.Value { return u.b.Constant(tensor.Scalar(float32(x))) }

// apply declares the moments, clips the gradients, and outputs the updated tensors and moments and the gradient norm.
func (u *update) apply(named []Named, params, grads []program.Value) {
	b, n := u.b, len(named)
	moments := make([]program.Value, 2*n)
	for i, t := range named {
		moments[i] = b.Input(firstPrefix+t.Name, t.Shape)
	}
	for i, t := range named {
		moments[n+i] = b.Input(secondPrefix+t.Name, t.Shape)
	}
	if u.o.Proximal > 0 {
		u.pull(named, params, grads)
	}
	norm := u.norm(grads)
	scale := u.clip(norm)
	for i, t := range named {
		m := u.keep(b.Moment(program.AdamM, moments[i], grads[i], scale, float32(u.o.Beta1)))
		v := u.keep(b.Moment(program.AdamV, moments[n+i], grads[i], scale, float32(u.o.Beta2)))
		decay := 0.0
		if u.o.DecayAll || len(t.Shape.Dims) >= 2 {
			decay = u.o.WeightDecay
		}
		p := u.keep(b.AdamP(params[i], m, v, u.lr, u.c1, u.c2, float32(u.o.Eps), float32(decay)))
		params[i], moments[i], moments[n+i] = p, m, v
	}
	for i, t := range named {
		b.Output(paramPrefix+t.Name, params[i])
	}
	for i, t := range named {
		b.Output(firstPrefix+t.Name, moments[i])
	}
	for i, t := range named {
		b.Output(secondPrefix+t.Name, moments[n+i])
	}
	b.Output("grad_norm", norm)
}

// pull adds the proximal term to the gradients: Proximal*(w - begin), every operation rounded.
func (u *update) pull(named []Named, params, grads []program.Value) {
	for i, t := range named {
		away := u.keep(u.b.Apply(program.Sub, params[i], u.b.Input(beginPrefix+t.Name, t.Shape)))
		weight := u.keep(u.b.Broadcast(u.scalar(u.o.Proximal), t.Shape.Dims, nil))
		grads[i] = u.keep(u.b.Apply(program.Add, grads[i], u.keep(u.b.Apply(program.Mul, away, weight))))
	}
}

// norm is the Euclidean norm of all gradients together.
func (u *update) norm(grads []program.Value) program.Value {
	total := u.keep(u.b.Apply(program.SumSquares, grads[0]))
	for _, g := range grads[1:] {
		total = u.keep(u.b.Apply(program.Add, total, u.keep(u.b.Apply(program.SumSquares, g))))
	}
	return u.keep(u.b.Apply(program.Sqrt, total))
}

// clip is the factor min(1, max/(norm+1e-6)) for the gradients, as PyTorch's clip_grad_norm_ has it.
func (u *update) clip(norm program.Value) program.Value {
	one := u.scalar(1)
	if u.o.MaxGradNorm == 0 {
		return one
	}
	floor := u.keep(u.b.Apply(program.Add, norm, u.scalar(1e-6)))
	ratio := u.keep(u.b.Apply(program.Div, u.scalar(u.o.MaxGradNorm), floor))
	return u.keep(u.b.Apply(program.Min, one, ratio))
}
