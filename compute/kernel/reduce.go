package kernel

// ChunkSum is the length of the pieces in which sums accumulate. It is part of the numerics.
const ChunkSum = 4096

// lanes is the number of partial sums of a piece: the width of the widest vector register.
const lanes = 16

// Sum adds the elements of one list in the order of every sum outside of matrix products. A list of at most ChunkSum
// elements: lane l of 16 adds elements l, l+16, ... in ascending order, starting from +0; then lane i adds lane i+8 for
// i below 8, and likewise with 4, 2 and 1. A longer list is cut in pieces of ChunkSum; its sum is that of the list of
// the sums of the pieces. The zero Path is the active one, here and below.
func (p Path) Sum(x []float32) float32 {
	if len(x) <= ChunkSum {
		return sumChunk(p, x)
	}
	var acc [lanes]float32
	unit := sumUnit(len(x))
	for i := 0; i*unit < len(x); i++ {
		acc[i%lanes] += p.Sum(x[i*unit : min((i+1)*unit, len(x))])
	}
	return sumLanes(&acc)
}

// sumUnit is the largest power of ChunkSum below n. Taking the sum of pieces that long, piece by piece, is the same as
// taking the list of sums level by level: the sum of a list of one sum is that sum.
func sumUnit(n int) int {
	unit := ChunkSum
	for unit*ChunkSum < n {
		unit *= ChunkSum
	}
	return unit
}

func sumChunk(p Path, x []float32) float32 {
	var acc [lanes]float32
	p, n := p.Vectors(len(x))
	if n &^= lanes - 1; n > 0 {
		sumVector(&acc[0], &x[0], n, p)
	}
	for i, v := range x[n:] {
		acc[i%lanes] += v
	}
	return sumLanes(&acc)
}

func sumLanes(acc *[lanes]float32) float32 {
	for w := lanes / 2; w > 0; w /= 2 {
		for i := range w {
			acc[i] += acc[i+w]
		}
	}
	return acc[0]
}

// SumSquares is Sum of the squares, each rounded.
func (p Path) SumSquares(x []float32) float32 {
	if len(x) <= ChunkSum {
		var squares [ChunkSum]float32
		p.Mul(squares[:len(x)], x, x)
		return sumChunk(p, squares[:len(x)])
	}
	var acc [lanes]float32
	unit := sumUnit(len(x))
	for i := 0; i*unit < len(x); i++ {
		acc[i%lanes] += p.SumSquares(x[i*unit : min((i+1)*unit, len(x))])
	}
	return sumLanes(&acc)
}

// SumRows puts the Sum of each row of n elements of x into dst.
func (p Path) SumRows(dst, x []float32, n int) {
	for i := range dst {
		dst[i] = p.Sum(x[i*n : (i+1)*n])
	}
}

// columnTile is the number of columns that SumColumns adds at a time, so that its lanes stay in the first-level cache.
const columnTile = 128

// SumColumns puts the Sum of each column of the rows of x into dst: dst[j] is the Sum of x[j], x[stride+j], ... .
func (p Path) SumColumns(dst, x []float32, rows, stride int) {
	for j := 0; j < len(dst); j += columnTile {
		sumColumns(p, dst[j:min(j+columnTile, len(dst))], x[j:], rows, stride)
	}
}

func sumColumns(p Path, dst, x []float32, rows, stride int) {
	var acc [lanes][columnTile]float32
	w := len(dst)
	if rows <= ChunkSum {
		for r := range rows {
			a := acc[r%lanes][:w]
			p.Add(a, a, x[r*stride:r*stride+w])
		}
	} else {
		var piece [columnTile]float32
		unit := sumUnit(rows)
		for i := 0; i*unit < rows; i++ {
			sumColumns(p, piece[:w], x[i*unit*stride:], min(unit, rows-i*unit), stride)
			a := acc[i%lanes][:w]
			p.Add(a, a, piece[:w])
		}
	}
	for n := lanes / 2; n > 0; n /= 2 {
		for i := range n {
			p.Add(acc[i][:w], acc[i][:w], acc[i+n][:w])
		}
	}
	copy(dst, acc[0][:w])
}

// MaxRows puts the largest element of each row of n elements of x, as Max has it, into dst. n is positive.
func (p Path) MaxRows(dst, x []float32, n int) {
	for i := range dst {
		dst[i] = largest(p, x[i*n:(i+1)*n])
	}
}

func largest(p Path, x []float32) float32 {
	top := x[0]
	if p, n := p.Vectors(len(x)); n >= 2*lanes {
		n &^= lanes - 1
		acc := [lanes]float32(x)
		largestVector(&acc[0], &x[lanes], n-lanes, p)
		for _, v := range acc {
			top = max(top, v)
		}
		x = x[n:]
	}
	for _, v := range x {
		top = max(top, v)
	}
	return top
}

// FoldRows puts the first element of each row of n elements of x, combined with all others by f, into dst. f is an
// associative and commutative function such as Max, or Add of integers, so that no order needs to be specified.
func FoldRows[T Number](f func(dst, x, y []T), dst, x []T, n int) {
	var acc [foldWidth]T
	for i := range dst {
		row := x[i*n : (i+1)*n]
		w := copy(acc[:], row)
		for row = row[w:]; len(row) > 0; {
			k := min(len(row), w)
			f(acc[:k], acc[:k], row[:k])
			row = row[k:]
		}
		for w > 1 {
			half := w / 2
			f(acc[:half], acc[:half], acc[w-half:w])
			w -= half
		}
		dst[i] = acc[0]
	}
}

// foldWidth is the number of elements that FoldRows combines at a time.
const foldWidth = 64

// FoldColumns is FoldRows over columns: dst[j] combines x[j], x[stride+j], ... .
func FoldColumns[T Number](f func(dst, x, y []T), dst, x []T, rows, stride int) {
	copy(dst, x[:len(dst)])
	for r := 1; r < rows; r++ {
		f(dst, dst, x[r*stride:r*stride+len(dst)])
	}
}
