package record

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Half is x rounded to bfloat16, to the nearest with ties to even, as float32. Its gradient is that of x: the rounding
// counts as none.
func Half(x *graph.Node) *graph.Node {
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		var e emitter
		return e.keep(b.Convert(e.keep(b.Convert(in[0], tensor.BFloat16)), tensor.Float32)), e.err
	}
	op.backward = func(_ *program.Builder, in [3]program.Value, _, adjoint program.Value) ([3]program.Value, error) {
		return [3]program.Value{adjoint, in[1], in[2]}, nil
	}
	return apply(op, x)
}
