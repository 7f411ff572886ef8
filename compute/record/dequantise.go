package record

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
)

// Dequantise is what codes of 8 bits [rows, columns] stand for by the scales [rows, blocks] of neighbours in a row, as
// kernel.Dequantize has it. It has no gradient.
func Dequantise(codes, scales *graph.Node) *graph.Node {
	at, dims := valueOf(codes), codes.Shape().Dimensions
	blocks := scales.Shape().Dimensions[1]
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		var e emitter
		cut := e.keep(b.Reshape(at, b.Shape(in[0]).Dims...))
		return e.keep(b.Apply(program.Dequantize, cut, in[0])), e.err
	}
	op.backward = func(_ *program.Builder, in [3]program.Value, _, _ program.Value) ([3]program.Value, error) {
		return in, nil // nobody reads them
	}
	wide := graph.ExpandAndBroadcast(scales, []int{dims[0], blocks, dims[1] / blocks}, []int{2})
	return graph.StopGradient(graph.Reshape(apply(op, wide), dims...))
}
