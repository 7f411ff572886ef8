package outer

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// AdamW is the inner optimizer of a worker (Loshchilov and Hutter 2019), applied by every member to the combined
// gradient: one step of synchronous data-parallel training. It has the bits of compute/kernel's AdamM, AdamV and
// AdamP.
type AdamW struct {
	Rate, Beta1, Beta2, Eps float32
	C1, C2                  float32 // corrections of bias, of this step
	Decay                   float32 // decoupled, times the rate
	Scale                   float32 // of the gradient
}

// State implements Optimizer.
func (AdamW) State() int { return 2 }

// Step implements Optimizer.
func (o AdamW) Step(p, d []float32, state [][]float32) {
	m, v := state[0], state[1]
	kernel.AdamM(m, m, d, o.Scale, o.Beta1)
	kernel.AdamV(v, v, d, o.Scale, o.Beta2)
	kernel.AdamP(p, p, m, v, o.Rate, o.C1, o.C2, o.Eps, o.Decay)
}

// Direction moves every parameter by the rate against the sign of the combined update, as signSGD (Bernstein et al.
// 2018) and DeMo (Peng et al. 2024) do. An element that no unit sent is zero, and its parameter changes by the decay
// alone: p -= Rate*(sign(d) + Decay*p).
type Direction struct{ Rate, Decay float32 }

// State implements Optimizer.
func (Direction) State() int { return 0 }

// Step implements Optimizer.
func (o Direction) Step(p, d []float32, _ [][]float32) {
	sign := make([]float32, len(p))
	kernel.Sign(sign, d)
	for i, s := range sign {
		p[i] -= float32(o.Rate * (s + float32(o.Decay*p[i])))
	}
}

// checkGradients reports why an optimizer cannot have the units of a specification.
func checkGradients(x train.Exchange) error {
	if steps := x.Outer == DecoupledAdam || x.Outer == SignSGD; steps != x.Gradients {
		return fmt.Errorf("outer: optimizer %q for units that are gradients: %t; those have %q or %q, and no others do",
			x.Outer, x.Gradients, DecoupledAdam, SignSGD)
	}
	return nil
}

// gradients is the step of one round of gradients.
type gradients struct {
	spec       *train.Spec
	lr, c1, c2 float32
	scale      float32 // of the combined update
}

// begin prepares the step after base: the norm of the combined update is clipped as PyTorch's clip_grad_norm_ does it,
// by min(1, clip/(norm+1e-6)).
func begin(s *train.Spec, round uint32, combined []*tensor.Tensor) gradients {
	g := gradients{spec: s, scale: 1. / train.GradientScale}
	g.lr, g.c1, g.c2 = s.OuterScalars(round)
	if s.Exchange.Clip > 0 {
		var path kernel.Path
		var squares float64
		for _, t := range combined {
			squares += float64(path.SumSquares(t.F32()))
		}
		norm := math.Sqrt(squares) / train.GradientScale
		g.scale = float32(min(1, s.Exchange.Clip/(norm+1e-6)) / train.GradientScale)
	}
	return g
}

// of is the optimizer for a parameter. Decay is for those of two or more dimensions, as within units.
func (g gradients) of(o Optimizer, shape tensor.Shape) Optimizer {
	var decay float32
	if len(shape.Dims) >= 2 {
		decay = float32(g.spec.Exchange.WeightDecay)
	}
	switch o := o.(type) {
	case AdamW:
		o.Rate, o.C1, o.C2, o.Decay, o.Scale = g.lr, g.c1, g.c2, decay, g.scale
		return o
	case Direction:
		return Direction{Rate: g.lr, Decay: decay}
	}
	return o
}
