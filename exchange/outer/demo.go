package outer

import (
	"fmt"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
)

// DeMo exchanges the fast part of every worker's momentum after every step (decoupled momentum, Peng et al. 2024): the largest frequencies leave the momentum and are averaged, and all replicas move by the sign of the
// result. With one bit a value it is DisTrO's wire. It is its own optimizer: there is no inner one.
type DeMo struct {
	Codec       codec.DCT
	Decay       float32 // of the momentum; 0.999 in the paper
	WeightDecay float32 // decoupled, times the rate
}

// Send adds a gradient to the worker's momentum of a parameter, nil at first, and returns what leaves it and what
// stays: error feedback of rate*g.
func (d DeMo) Send(momentum, g *tensor.Tensor, rate float32) (payload []byte, next *tensor.Tensor, err error) {
	scaled := g.Clone()
	x := scaled.F32()
	for i := range x {
		x[i] *= rate
	}
	return codec.Feedback{Codec: d.Codec, Decay: d.Decay}.Encode(momentum, scaled)
}

// Ahead returns where a worker takes its gradient while the last step's result is on its way (DisTrO): the parameter
// moved by the sign of the worker's own momentum, its guess of that result.
func (d DeMo) Ahead(p, momentum *tensor.Tensor, rate float32) *tensor.Tensor {
	guess := tensor.New(p.Shape)
	x := guess.F32()
	kernel.Sign(x, momentum.F32())
	for i, v := range p.F32() {
		x[i] = v - float32(rate*x[i])
	}
	return guess
}

// Apply moves a parameter in place. payloads are those of all workers in the order of their units. Each frequency is
// averaged over the workers that sent it; where the result is zero the parameter stays.
func (d DeMo) Apply(p *tensor.Tensor, payloads [][]byte, rate float32) error {
	updates := make([]aggregate.Update, len(payloads))
	for i, b := range payloads {
		f, err := d.Codec.Frequencies(b, p.Shape)
		if err != nil {
			return fmt.Errorf("unit %d: %w", i, err)
		}
		updates[i] = aggregate.Update{Unit: uint32(i), Weight: 1, Tensors: []*tensor.Tensor{tensor.FromF32(f, len(f))}}
	}
	mean, err := aggregate.Combine(aggregate.ContributorMean{}, updates)
	if err != nil {
		return err
	}
	direction := d.Codec.Synthesize(mean[0].F32(), p.Shape).F32()
	kernel.Sign(direction, direction)
	keep := 1 - float32(rate*d.WeightDecay)
	x := p.F32()
	for i, s := range direction {
		x[i] = float32(keep*x[i]) - float32(rate*s)
	}
	return nil
}
