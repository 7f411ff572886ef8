package elementary

import "github.com/starling-network/starling/compute/kernel"

// CrossEntropy sets dst[i] to -log softmax(x)[targets[i]] of row i of n elements of x, in nats: with m = Max of the row
// and l = Sum of Exp(x-m) it is Log(l) - (x[target]-m), and Log(l) where the target is not a column. scratch has n
// elements.
func CrossEntropy[I int32 | int64](m Math, dst, x []float32, targets []I, n int, scratch []float32) {
	for i := range dst {
		row := x[i*n : (i+1)*n]
		top, sum := shiftedExp(m, scratch[:n], row)
		dst[i] = m.Scalars().Log(sum)
		if t := targets[i]; t >= 0 && int64(t) < int64(n) {
			dst[i] -= row[t] - top
		}
	}
}

// CrossEntropyGrad sets row i of dst to the gradient of CrossEntropy times d[i]: Exp(x-m) * (d/l), and in the column of
// the target d less. dst may be x.
func CrossEntropyGrad[I int32 | int64](m Math, dst, x []float32, targets []I, d []float32, n int) {
	for i, scale := range d {
		row := dst[i*n : (i+1)*n]
		_, sum := shiftedExp(m, row, x[i*n:(i+1)*n])
		r := scale / sum
		for j := range row {
			row[j] = float32(row[j] * r)
		}
		if t := targets[i]; t >= 0 && int64(t) < int64(n) {
			row[t] -= scale
		}
	}
}

// shiftedExp sets dst to Exp(x-m) for the maximum m of x, and returns m and the Sum. dst may be x.
func shiftedExp(m Math, dst, x []float32) (top, sum float32) {
	var most [1]float32
	kernel.FoldRows(m.Path.Max, most[:], x, len(x))
	top = most[0]
	for lo := 0; lo < len(x); lo += kernel.ChunkSum {
		part := dst[lo:min(lo+kernel.ChunkSum, len(x))]
		for j, v := range x[lo : lo+len(part)] {
			part[j] = v - top
		}
		m.Exp(part, part)
	}
	return top, m.Path.Sum(dst)
}
