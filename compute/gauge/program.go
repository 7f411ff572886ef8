package gauge

import (
	"errors"
	"runtime"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// State is the name of the state of Program, and Fixed that of its other input.
const State, Fixed = "x", "w"

// Program is one step of several segments at once, [segments, Side, Side]: the output State is the input State of the
// next step. It has the bits of Segment.
func Program(segments int) (*program.Program, error) {
	b := program.NewBuilder()
	shape := tensor.Make(tensor.Float32, segments, Side, Side)
	x, w := b.Input(State, shape), b.Input(Fixed, shape)
	y, err := b.Dot(x, []int{2}, []int{0}, w, []int{1}, []int{0})
	whole, wrong := b.Apply(program.Round, y)
	next, worse := b.Apply(program.Sub, y, whole)
	if err := errors.Join(err, wrong, worse); err != nil {
		return nil, err
	}
	b.Output(State, next)
	return b.Finish()
}

// Inputs are those of Program before the first step of segments from first on.
func Inputs(seed canon.Digest, first uint32, segments int) map[string]*tensor.Tensor {
	shape := tensor.Make(tensor.Float32, segments, Side, Side)
	x, w := tensor.New(shape), tensor.New(shape)
	for i := range segments {
		lo, hi := i*Side*Side, (i+1)*Side*Side
		start(seed, first+uint32(i), x.F32()[lo:hi], w.F32()[lo:hi])
	}
	return map[string]*tensor.Tensor{State: x, Fixed: w}
}

// Results are the digests of the segments, whose states after the last step are x [segments, Side, Side].
func Results(x *tensor.Tensor) (list []canon.Digest) {
	for all := x.F32(); len(all) > 0; all = all[Side*Side:] {
		list = append(list, result(all[:Side*Side]))
	}
	runtime.KeepAlive(x)
	return list
}
