package codec

import (
	"fmt"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// Feedback sends with every update what the codec left out of earlier ones (error feedback, Seide et al. 2014): of
// a = Decay*residual + delta it sends C(a), and the next residual is a - C(a).
//
// The residual is one worker's, for one parameter, from round to round; nil stands for zero, and is what a worker has
// that joins, comes back, or whose update was not used.
type Feedback struct {
	Codec Codec
	Decay float32 // of the residual; 1 forgets nothing, SparseLoCo uses 0.95
}

// Encode returns the payload and the next residual. Its arguments stay as they are.
func (f Feedback) Encode(residual, delta *tensor.Tensor) (payload []byte, next *tensor.Tensor, err error) {
	if next, err = accumulate(residual, f.Decay, delta); err != nil {
		return nil, nil, err
	}
	payload, sent, err := transmit(f.Codec, next)
	if err != nil {
		return nil, nil, err
	}
	LeftOut(next.F32(), sent)
	return payload, next, nil
}

// Accumulate adds what was left out of earlier updates to an update, in place.
func (f Feedback) Accumulate(delta, residual []float32) { add(delta, f.Decay, residual) }

// LeftOut subtracts the sent values from the sum that was to be sent, in place.
func LeftOut(sum, sent []float32) {
	var p kernel.Path
	p.Sub(sum, sum, sent)
}

// accumulate returns scale*memory + x.
func accumulate(memory *tensor.Tensor, scale float32, x *tensor.Tensor) (*tensor.Tensor, error) {
	next := x.Clone()
	if memory == nil {
		return next, nil
	}
	if !memory.Shape.Equal(x.Shape) {
		return nil, fmt.Errorf("codec: a residual of %s for an update of %s: start again from none", memory.Shape, x.Shape)
	}
	add(next.F32(), scale, memory.F32())
	return next, nil
}

func add(y []float32, scale float32, memory []float32) {
	for i, m := range memory {
		y[i] += float32(scale * m)
	}
}

// transmit returns the payload of x, and its decoded values.
func transmit(c Codec, x *tensor.Tensor) ([]byte, []float32, error) {
	payload, err := Compress(c, x)
	if err != nil {
		return nil, nil, err
	}
	sent, err := Restore(c, payload, x.Shape)
	if err != nil {
		return nil, nil, err
	}
	return payload, sent.F32(), nil
}
