package outer

import "math"

// Optimizer moves parameters against a pseudo-gradient: base minus trained, averaged. Every product and sum is rounded
// to float32.
type Optimizer interface {
	// State is the number of tensors of state for each parameter, zeros at first. They belong to the checkpoint: a member
	// that resumes or joins without them computes other results.
	State() int
	// Step moves p, and the state of its parameter, in place. All slices have one length; d stays as it is.
	Step(p, d []float32, state [][]float32)
}

// GradientDescent is plain gradient descent: p -= Rate*d. With Rate 1 and the mean weighted by tokens it is FedAvg
// (McMahan et al. 2017, algorithm 1).
type GradientDescent struct{ Rate float32 }

// State implements Optimizer.
func (GradientDescent) State() int { return 0 }

// Step implements Optimizer.
func (o GradientDescent) Step(p, d []float32, _ [][]float32) {
	d = d[:len(p)]
	for i := range p {
		p[i] -= float32(o.Rate * d[i])
	}
}

// Momentum is descent with Nesterov momentum in PyTorch's form: u = Decay*u + d; p -= Rate*(d + Decay*u).
type Momentum struct{ Rate, Decay float32 }

// State implements Optimizer.
func (Momentum) State() int { return 1 }

// Step implements Optimizer.
func (o Momentum) Step(p, d []float32, state [][]float32) {
	d, u := d[:len(p)], state[0][:len(p)]
	for i := range p {
		v := float32(o.Decay*u[i]) + d[i]
		u[i] = v
		p[i] -= float32(o.Rate * (d[i] + float32(o.Decay*v)))
	}
}

// Adaptive is FedAdam, or FedYogi (Reddi et al. 2021, algorithm 2): m = Beta1*m + (1-Beta1)*d, p -=
// Rate*m/(sqrt(v)+Tau), with v = Beta2*v + (1-Beta2)*d*d, or for Yogi v -= (1-Beta2)*d*d*sign(v-d*d), which falls more
// slowly. There is no correction of bias. The paper's values are 0.9, 0.99 and 0.001.
type Adaptive struct {
	Rate, Beta1, Beta2, Tau float32
	Yogi                    bool
}

// State implements Optimizer.
func (Adaptive) State() int { return 2 }

// Step implements Optimizer.
func (o Adaptive) Step(p, d []float32, state [][]float32) {
	d, m, v := d[:len(p)], state[0][:len(p)], state[1][:len(p)]
	rest1, rest2 := 1-o.Beta1, 1-o.Beta2
	for i, g := range d {
		m[i] = float32(o.Beta1*m[i]) + float32(rest1*g)
		square := float32(g * g)
		part := float32(rest2 * square)
		switch {
		case !o.Yogi:
			v[i] = float32(o.Beta2*v[i]) + part
		case v[i] > square:
			v[i] -= part
		case v[i] < square:
			v[i] += part
		}
		root := float32(math.Sqrt(float64(v[i])))
		p[i] -= float32(o.Rate*m[i]) / (root + o.Tau)
	}
}
