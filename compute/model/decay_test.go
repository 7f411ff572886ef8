package model

import (
	"math"
	"testing"

	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
)

// TestDecayAll counts the updates that decay: those of matrices, or with DecayAll those of every tensor.
func TestDecayAll(t *testing.T) {
	for name, c := range tiny(t) {
		matrices := 0
		for _, n := range c.Tensors() {
			if len(n.Shape.Dims) >= 2 {
				matrices++
			}
		}
		for all, want := range map[bool]int{false: matrices, true: len(c.Tensors())} {
			o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1, DecayAll: all}
			p, err := TrainStep(c, o, testBatch, testLength)
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			for _, op := range p.Ops {
				if op.Kind == program.AdamP && op.Ints[1] == int64(math.Float32bits(0.1)) {
					got++
				}
			}
			if got != want {
				t.Errorf("%s, DecayAll %t: %d updates decay, want %d", name, all, got, want)
			}
		}
	}
}
