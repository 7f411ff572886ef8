package outer

import (
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/aggregate"
)

// Each test here is a mistake that an implementation of this family has made. Tests of codecs and rules are in their
// own packages.

func noise(seed uint64, n int) *tensor.Tensor {
	t := tensor.New(tensor.Make(tensor.Float32, n))
	philox.NormalTo(t.F32(), seed, 0)
	return t
}

// A worker that joins has trained nothing: it takes no part in the mean, in place of a zero that counts in it.
func TestWhoJoinsIsNotInTheDenominator(t *testing.T) {
	zero := tensor.New(tensor.Make(tensor.Float32, 100))
	updates := []aggregate.Update{{Unit: 0, Weight: 1, Tensors: []*tensor.Tensor{noise(1, 100)}},
		{Unit: 1, Weight: 0, Tensors: []*tensor.Tensor{zero}}}
	got, err := aggregate.Combine(aggregate.Average{}, updates)
	if err != nil || !slices.Equal(got[0].F32(), noise(1, 100).F32()) {
		t.Errorf("%v", err)
	}
}
