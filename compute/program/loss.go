package program

import (
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

func ruleCrossEntropy(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	logits, targets := in[0], in[1]
	if !float(logits.DType) || logits.Rank() != 2 || !index(targets.DType) || targets.Rank() != 1 ||
		targets.Dims[0] != logits.Dims[0] {
		return logits, invalid("logits %s, targets %s", logits, targets)
	}
	rows := tensor.Make(tensor.Float32, logits.Dims[0])
	if op.Kind == CrossEntropy {
		return rows, noInts(op)
	}
	if !in[2].Equal(rows) {
		return logits, invalid("logits %s, factors of the gradient %s", logits, in[2])
	}
	return logits, noInts(op)
}

// lowerCrossEntropy writes the gradient over the logits if nobody else reads them.
func (pl *plan) lowerCrossEntropy(op *Operator) loc {
	logits := pl.p.Ops[op.In[0]].Out
	n := logits.Dims[1]
	in := make([]span, len(op.In))
	for i, v := range op.In {
		in[i] = pl.spanOf(v)
	}
	if op.Kind == CrossEntropy {
		pl.scratch = max(pl.scratch, 4*n)
	}
	run := crossEntropyOf[int32](op.Kind, pl.path, n)
	if pl.p.Ops[op.In[1]].Out.DType == tensor.Int64 {
		run = crossEntropyOf[int64](op.Kind, pl.path, n)
	}
	l := pl.addStep(in, op.Out, run)
	if op.Kind == CrossEntropyGrad {
		pl.mayWriteOver(in)
	}
	return l
}

func crossEntropyOf[I int32 | int64](k Kind, path kernel.Path, n int) stepFunc {
	return func(x *Exec, dst []byte, in [][]byte) error {
		to, logits, targets := tensor.As[float32](dst), tensor.As[float32](in[0]), tensor.As[I](in[1])
		x.share(len(targets), 8*n, func(w *worker, lo, hi int) {
			rows := logits[lo*n : hi*n]
			if k == CrossEntropy {
				kernel.CrossEntropy(path, to[lo:hi], rows, targets[lo:hi], n, tensor.As[float32](w.scratch))
			} else {
				kernel.CrossEntropyGrad(path, to[lo*n:hi*n], rows, targets[lo:hi], tensor.As[float32](in[2])[lo:hi], n)
			}
		})
		return nil
	}
}

// crossEntropyRange computes whole rows.
func crossEntropyRange(op *Operator, in []tensor.Shape, lo, hi int) piece {
	n := in[0].Dims[1]
	from, to := lo, hi
	single := &Operator{Kind: op.Kind, Out: tensor.Make(tensor.Float32, to-from)}
	p := piece{op: single}
	if op.Kind == CrossEntropyGrad {
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
	if op.Kind == CrossEntropyGrad {
		p.in = append(p.in, gather{operand: 2, dims: []int{to - from}, runs: rows})
	}
	return p
}

// crossEntropyVolume is the elements of operands that n elements need: whole rows.
func crossEntropyVolume(op *Operator, in []tensor.Shape, n int) int {
	if op.Kind == CrossEntropyGrad {
		n = n/in[0].Dims[1] + 2
	}
	return times(n, in[0].Dims[1]+len(in))
}
