package cpu

import (
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// reduceStep reduces [outer, n, inner] over n.
func reduceStep(path kernel.Path, k program.Kind, d tensor.DType, outer, n, inner int) stepFunc {
	switch {
	case d != tensor.Float32:
		return byType(d, nil, foldInt[int8](k, outer, n, inner), foldInt[int32](k, outer, n, inner),
			foldInt[int64](k, outer, n, inner), foldInt[uint8](k, outer, n, inner), foldInt[uint32](k, outer, n, inner))
	case k == program.ReduceSum:
		return reduceRun(outer, n, inner, path.SumRows, path.SumColumns)
	case k == program.ReduceMax:
		columns := func(dst, x []float32, rows, stride int) { kernel.FoldColumns(path.Max, dst, x, rows, stride) }
		return reduceRun(outer, n, inner, path.MaxRows, columns)
	}
	return foldRun(path.Min, outer, n, inner)
}

func foldInt[T kernel.Integer](k program.Kind, outer, n, inner int) stepFunc {
	switch k {
	case program.ReduceSum:
		return foldRun(kernel.Add[T], outer, n, inner)
	case program.ReduceMax:
		return foldRun(kernel.Max[T], outer, n, inner)
	}
	return foldRun(kernel.Min[T], outer, n, inner)
}

// foldRun is a reduction by a function for which no order needs to be specified.
func foldRun[T kernel.Number](f func(dst, x, y []T), outer, n, inner int) stepFunc {
	rows := func(dst, x []T, n int) { kernel.FoldRows(f, dst, x, n) }
	columns := func(dst, x []T, rows, stride int) { kernel.FoldColumns(f, dst, x, rows, stride) }
	return reduceRun(outer, n, inner, rows, columns)
}

// reduceRun runs a reduction of [outer, n, inner] over n, its results spread over the threads.
func reduceRun[T tensor.Element](outer, n, inner int, rows func(dst, x []T, n int),
	columns func(dst, x []T, rows, stride int)) stepFunc {
	return func(x *Exec, dst []byte, in [][]byte) error {
		to, from := tensor.As[T](dst), tensor.As[T](in[0])
		if inner == 1 {
			x.parallel(outer, n, func(lo, hi int) { rows(to[lo:hi], from[lo*n:hi*n], n) })
			return nil
		}
		x.parallel(outer*inner, n, func(lo, hi int) {
			for lo < hi {
				o, j := lo/inner, lo%inner
				k := min(hi-lo, inner-j)
				columns(to[lo:lo+k], from[o*n*inner+j:(o+1)*n*inner], n, inner)
				lo += k
			}
		})
		return nil
	}
}
