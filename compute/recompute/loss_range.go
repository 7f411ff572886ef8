package recompute

import (
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute/gather"
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
	rows := gather.One(from, to-from)
	p.in = []gather.Gather{
		{Operand: 0, Dims: []int{to - from, n}, Runs: gather.One(from*n, (to-from)*n)},
		{Operand: 1, Dims: []int{to - from}, Runs: rows},
	}
	if op.Kind == program.CrossEntropyGrad {
		p.in = append(p.in, gather.Gather{Operand: 2, Dims: []int{to - from}, Runs: rows})
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
