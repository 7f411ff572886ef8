package record

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/program"
)

// Exact is the product of x [n, in] and the weights w of a layer over an axis of w, by program.DotExact. So are its
// gradients, whose blocks are those of the axis that each contracts: the products count as exact.
func Exact(x, w *graph.Node, axis int, form exact.Form) *graph.Node {
	op := operator{}
	product := func(b *program.Builder, x program.Value, xAxis int, y program.Value, yAxis int) (program.Value, error) {
		return b.Append(program.Operator{Kind: program.DotExact, In: []int32{int32(x), int32(y)},
			Ints: []int64{1, 0, int64(xAxis), int64(yAxis), int64(form.Bits), int64(form.Block)}})
	}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		return product(b, in[0], 1, in[1], axis)
	}
	op.backward = func(b *program.Builder, in [3]program.Value, _, adjoint program.Value) ([3]program.Value, error) {
		var e emitter
		dx := e.keep(product(b, adjoint, 1, in[1], 1-axis))
		first, second := in[0], adjoint
		if axis == 1 { // w is [out, in]
			first, second = adjoint, in[0]
		}
		return [3]program.Value{dx, e.keep(product(b, first, 0, second, 0)), in[2]}, e.err
	}
	return apply(op, x, w)
}
