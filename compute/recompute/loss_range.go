package recompute

import (
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// crossEntropyRange computes whole rows.
func crossEntropyRange(op *program.Operator, in []tensor.Shape, lo, hi int) piece {
	n := in[0].Dims[1]
	from, to := lo, hi
	single := &program.Operator{Kind: op.Kind, Out: tensor.Make(tensor.Float32, to-from)}
	p := piece{op: single}
	if op.Kind == program.CrossEntropyGrad {
		from, to = lo/n, (hi-1)/n+1
		single.Out = tensor.Make(tensor.Float32, to-from, n)
		for i := range hi - lo {
			p.take = append(p.take, lo-from*n+i)
		}
	}
	rows := []elements{{from, to - from}}
	p.in = []gather{
		{operand: 0, dims: []int{to - from, n}, runs: []elements{{from * n, (to - from) * n}}},
		{operand: 1, dims: []int{to - from}, runs: rows},
	}
	if op.Kind == program.CrossEntropyGrad {
		p.in = append(p.in, gather{operand: 2, dims: []int{to - from}, runs: rows})
	}
	return p
}

// crossEntropyVolume is the elements of operands that n elements need: whole rows.
func crossEntropyVolume(op *program.Operator, in []tensor.Shape, n int) int {
	if op.Kind == program.CrossEntropyGrad {
		n = n/in[0].Dims[1] + 2
	}
	return times(n, in[0].Dims[1]+len(in))
}
