package recompute

import (
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute/gather"
	"github.com/starling-network/starling/compute/tensor"
)

// gradeRange rewards some answers, each to a copy of its example.
func gradeRange(op *program.Operator, in []tensor.Shape, lo, hi int) piece {
	length, each, group := in[0].Dims[1], in[1].Dims[1], in[1].Dims[0]/in[0].Dims[0]
	single := *op
	single.Out = tensor.Make(tensor.Float32, hi-lo)
	examples := gather.Gather{Operand: 0, Dims: []int{hi - lo, length}}
	for i := lo; i < hi; i++ {
		examples.Add(i/group*length, length)
	}
	return piece{op: &single, in: []gather.Gather{examples,
		{Operand: 1, Dims: []int{hi - lo, each}, Runs: gather.One(lo*each, (hi-lo)*each)}}}
}
