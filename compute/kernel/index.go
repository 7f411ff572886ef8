package kernel

// TakeRows copies row indices[i] of table, of width elements, to row i of dst. It returns the position of the first
// index outside of the table, or -1 if there is none; then all rows before it are copied.
func TakeRows[T Element, I int32 | int64](dst, table []T, indices []I, width int) (bad int) {
	rows := len(table) / width
	for i, r := range indices {
		if r < 0 || int64(r) >= int64(rows) {
			return i
		}
		copy(dst[i*width:(i+1)*width], table[int(r)*width:])
	}
	return -1
}

// AddRows adds columns lo to hi of row i of updates to those of row indices[i] of dst, for i ascending. Rows have width
// elements. It returns the position of the first index outside of dst, or -1.
func AddRows[I int32 | int64](dst []float32, indices []I, updates []float32, width, lo, hi int) (bad int) {
	rows := len(dst) / width
	for i, r := range indices {
		if r < 0 || int64(r) >= int64(rows) {
			return i
		}
		row := dst[int(r)*width+lo : int(r)*width+hi]
		Add(row, row, updates[i*width+lo:i*width+hi])
	}
	return -1
}
