package adversary

import (
	"context"
	"math"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/run"
	"github.com/starling-network/starling/protocol/run/terms"
	"github.com/starling-network/starling/role/engine"
)

// NondeterministicStack is a worker that computes with another stack: every weight differs from the exact one in its
// low bits after every inner step. In a tolerant run that breaks no rule; a unit that has to be exact it computes
// exactly.
type NondeterministicStack struct {
	Bits int // of the 23 bits of a fraction
}

// Install implements Attack.
func (a NondeterministicStack) Install(c Setup) Step {
	noisy := faultyCompute{Honest: c.Honest, tamper: func(done uint32, _, after []*tensor.Tensor) {
		for i, t := range after[:len(after)/3] { // the weights; moments follow
			for j, x := range t.F32() {
				noise := mix(uint64(done)<<48^uint64(i)<<32^uint64(j)) & (1<<a.Bits - 1)
				t.F32()[j] = math.Float32frombits(math.Float32bits(x) ^ uint32(noise))
			}
		}
	}}
	c.Party.Compute = numericNoise{Honest: c.Honest, noisy: noisy, state: c.State}
	return c.Step
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

type numericNoise struct {
	Honest
	noisy faultyCompute
	state func(ctx context.Context) (run.State, error)
}

// Train implements party.Compute.
func (v numericNoise) Train(ctx context.Context, base terms.Checkpoint, unit uint32) (*engine.Work, error) {
	s, err := v.state(ctx)
	if err != nil {
		return nil, err
	}
	if s.Base == base && int(unit) < len(s.Units) && !s.Tolerant(*s.Units[unit]) {
		return v.Honest.Train(ctx, base, unit)
	}
	return v.noisy.Train(ctx, base, unit)
}
