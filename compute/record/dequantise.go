package record

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Dequantise is the matrix that codes stand for by the scales [rows, blocks] of neighbours in a row. Codes of 8 bits
// [rows, columns] are those of kernel.Dequantize; two codes of 4 bits in a byte [rows, columns/2], the first in the
// high bits, are places in a table, of which the product with the scale is rounded. It has no gradient.
func Dequantise(codes, scales *graph.Node, table [16]float32) *graph.Node {
	at, rows, columns := valueOf(codes), codes.Shape().Dimensions[0], codes.Shape().Dimensions[1]
	packed := codes.DType() == dtypes.Uint8
	if packed {
		columns *= 2
	}
	blocks := scales.Shape().Dimensions[1]
	op := operator{}
	op.forward = func(b *program.Builder, in [3]program.Value) (program.Value, error) {
		var e emitter
		if packed {
			numbers := looked(b, &e, at, rows, columns, table)
			return e.keep(b.Apply(program.Mul, e.keep(b.Reshape(numbers, b.Shape(in[0]).Dims...)), in[0])), e.err
		}
		cut := e.keep(b.Reshape(at, b.Shape(in[0]).Dims...))
		return e.keep(b.Apply(program.Dequantize, cut, in[0])), e.err
	}
	op.backward = func(_ *program.Builder, in [3]program.Value, _, _ program.Value) ([3]program.Value, error) {
		return in, nil // their values are not read
	}
	wide := graph.ExpandAndBroadcast(scales, []int{rows, blocks, columns / blocks}, []int{2})
	return graph.StopGradient(graph.Reshape(apply(op, wide), rows, columns))
}

// looked are the numbers of a table at the places that bytes hold two of each.
func looked(b *program.Builder, e *emitter, bytes program.Value, rows, columns int, table [16]float32) program.Value {
	sixteen := tensor.New(tensor.Make(tensor.Uint8))
	sixteen.Bytes()[0] = 16
	half := e.keep(b.Reshape(bytes, rows, columns/2, 1))
	by := e.keep(b.Broadcast(b.Constant(sixteen), []int{rows, columns / 2, 1}, nil))
	high := e.keep(b.Apply(program.Div, half, by))
	low := e.keep(b.Apply(program.Sub, half, e.keep(b.Apply(program.Mul, high, by))))
	places := e.keep(b.Convert(e.keep(b.Concat(2, high, low)), tensor.Int32))
	return e.keep(b.Apply(program.TakeRows, b.Constant(tensor.FromF32(table[:], 16)), places))
}
