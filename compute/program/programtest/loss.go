package programtest

import (
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

func (w *writer) crossEntropy(k program.Kind) program.Value {
	rows, classes := 1+w.r.IntN(5), 1+w.r.IntN(9)
	logits := w.like(tensor.Make(tensor.Float32, rows, classes))
	targets := tensor.New(tensor.Make([]tensor.DType{tensor.Int32, tensor.Int64}[w.r.IntN(2)], rows))
	size := targets.Shape.DType.Size()
	for i := range rows {
		targets.Bytes()[i*size] = byte(w.r.IntN(classes + 1)) // one of them is none
	}
	at := w.keep(w.b.Constant(targets), nil)
	if k == program.CrossEntropy {
		return w.keep(w.b.Apply(program.CrossEntropy, logits, at))
	}
	return w.keep(w.b.Apply(program.CrossEntropyGrad, logits, at, w.like(tensor.Make(tensor.Float32, rows))))
}

// evalCrossEntropy is the oracle: a softmax row by row.
func evalCrossEntropy(numerics uint32, op *program.Operator, in []naive) naive {
	out, n, one := naiveOf(op.Out), in[0].shape.Dims[1], elementary.Math{Version: numerics}.Scalars()
	for i, target := range in[1].i {
		row, e := in[0].f[i*n:(i+1)*n], make([]float32, n)
		top := row[0]
		for _, x := range row {
			top = max(top, x)
		}
		for j, x := range row {
			e[j] = one.Exp(x - top)
		}
		sum := kernel.Portable.Sum(e)
		if op.Kind == program.CrossEntropy {
			out.f[i] = one.Log(sum)
			if target >= 0 && target < int64(n) {
				out.f[i] -= row[target] - top
			}
			continue
		}
		for j := range e {
			out.f[i*n+j] = float32(e[j] * (in[2].f[i] / sum))
			if int64(j) == target {
				out.f[i*n+j] -= in[2].f[i]
			}
		}
	}
	return out
}
