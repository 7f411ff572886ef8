// Package activation is an oracle of activations, one number at a time. It is imported by tests alone.
package activation

import (
	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/detmath/single"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
)

// Of is an activation of x in a version of the numerics, every operation rounded; d is the factor of a gradient.
func Of(numerics uint32, k program.Kind, x, d float32) float32 {
	if numerics == kernel.Version2 {
		return second(k, x, d)
	}
	const s = 0.7978845608028654
	const c = 0.044715 * s
	sigmoid := detmath.Logistic(x)
	square, half := float32(x*x), float32(x*0.5)
	t := detmath.Tanh(x * (float32(square*float32(c)) + float32(s)))
	switch k {
	case program.Gelu:
		return half + float32(half*t)
	case program.GeluGrad:
		rise := float32(square*float32(3*c)) + float32(s)
		return d * ((0.5 + float32(0.5*t)) + float32(float32(half*(1-float32(t*t)))*rise))
	case program.Silu:
		return x * sigmoid
	}
	return d * (sigmoid * (1 + float32(x*(1-sigmoid))))
}

// second is Of in version 2 of the numerics.
func second(k program.Kind, x, d float32) float32 {
	const s = 2 * 0.7978845608028654
	const c = 0.044715 * s
	square, rise := float32(x*x), float32(1)
	arg := x
	if k == program.Gelu || k == program.GeluGrad {
		arg = float32(x * (float32(square*float32(c)) + float32(s)))
		rise = float32(square*float32(3*c)) + float32(s)
	}
	sigmoid := single.Logistic(arg)
	if k == program.Gelu || k == program.Silu {
		return x * sigmoid
	}
	return d * (sigmoid * (1 + float32(float32(x*(1-sigmoid))*rise)))
}
