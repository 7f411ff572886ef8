// Package fixedpoint puts updates on a grid of integers, so that their sums do not depend on the order of addition, and
// masks of secure aggregation cancel to the bit. An update is clipped to a Euclidean norm first. The package knows no
// masks and no noise.
package fixedpoint

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/starling-network/starling/compute/tensor"
)

// Unit is how many steps of the grid the clipping norm has. A sum of Clients updates of that norm takes 29 bits. The
// other bits of 32 hold noise of discrete.MaxScale for each client, up to 8 standard deviations of the sum.
const Unit = 1 << 22

// Clients is the largest number of updates that are added.
const Clients = 128

// ErrUpdate wraps every reason why an update cannot be put on the grid.
var ErrUpdate = errors.New("fixed point: the update does not fit the grid")

// Encode clips an update to a norm, weighs it with w, from 0 to 1, and rounds it towards zero to the grid: an element x
// becomes w·x·Unit/clip. The last element is the weight itself on the grid. The Euclidean norm of the others is at most
// Unit, to the integer.
func Encode(update []*tensor.Tensor, clip, w float64) ([]uint32, error) {
	if !(clip > 0) || math.IsInf(clip, 0) || !(w >= 0 && w <= 1) {
		return nil, fmt.Errorf("%w: norm %v, weight %v", ErrUpdate, clip, w)
	}
	var square float64
	n := 0
	for _, t := range update {
		for _, x := range t.F32() {
			square += float64(float64(x) * float64(x))
		}
		n += len(t.F32())
	}
	if math.IsNaN(square) || math.IsInf(square, 0) {
		return nil, fmt.Errorf("%w: it has elements that are not finite", ErrUpdate)
	}
	scale := w * Unit / max(clip, math.Sqrt(square))
	for {
		values := make([]uint32, 0, n+1)
		for _, t := range update {
			for _, x := range t.F32() {
				values = append(values, uint32(int32(float64(x)*scale)))
			}
		}
		if norm(values) {
			return append(values, uint32(w*Unit)), nil
		}
		scale *= 1 - 0x1p-40 // the float64 sum of squares was rounded down
	}
}

// Fits reports whether Encode can have returned values, of at least one element and a weight: a party that sees an
// update of a stranger need not add one that is longer than its weight allows.
func Fits(values []uint32) bool {
	last := len(values) - 1
	return last > 0 && values[last] <= Unit && norm(values[:last])
}

// norm reports whether the Euclidean norm of values is at most Unit.
func norm(values []uint32) bool {
	var high, low uint64
	for _, v := range values {
		x := uint64(max(int64(int32(v)), -int64(int32(v))))
		h, l := bits.Mul64(x, x)
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	return high == 0 && low <= Unit*Unit
}

// Mean is the weighted mean of the updates whose encodings have this sum, in tensors of the given shapes.
func Mean(sum []uint32, clip float64, shapes []tensor.Shape) ([]*tensor.Tensor, error) {
	n := 1
	for _, s := range shapes {
		n += s.Elements()
	}
	if len(sum) != n {
		return nil, fmt.Errorf("%w: a sum of %d elements, wanted %d", ErrUpdate, len(sum), n)
	}
	weight := int32(sum[n-1])
	if weight <= 0 || weight > Clients*Unit {
		return nil, fmt.Errorf("%w: the weights of a sum are %d in all, outside 1..%d", ErrUpdate, weight, Clients*Unit)
	}
	scale := clip / float64(weight)
	var out []*tensor.Tensor
	for _, s := range shapes {
		t := tensor.New(s)
		for i := range t.F32() {
			t.F32()[i] = float32(float64(int32(sum[i])) * scale)
		}
		sum, out = sum[s.Elements():], append(out, t)
	}
	return out, nil
}
