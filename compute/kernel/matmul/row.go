package matmul

// A product of one row reads B once and little else, so it reads B where it lies: packing would double the traffic.

// rowBlock is the number of columns whose sums are kept in the first-level cache while rows of B stream past.
const rowBlock = 1024

// isRow reports whether p has a kernel for products of one row.
func (p product) isRow() bool {
	return p.m == 1 && p.path.Floats() && p.c.col == 1 && p.n >= 16 && p.k >= 4 && (p.b.col == 1 || p.b.row == 1)
}

// row computes p, for which isRow holds.
func (p product) row() {
	w := takeWorkspace()
	defer w.leave()
	row := w.a.room(p.k)
	for k := range row {
		row[k] = p.a.data[k*p.a.col]
	}
	whole := p.n &^ 15
	for k := 0; k < p.k; k += ChunkK {
		a, add := row[k:min(k+ChunkK, p.k)], p.add || k > 0
		for j := 0; j < whole; j += rowBlock {
			c, b := p.c.data[j:min(j+rowBlock, whole)], p.b.from(k, j)
			if p.b.col == 1 {
				rowOfRows(c, a, b, w.edge[:len(c)], add)
			} else {
				rowOfColumns(c, a, b, add)
			}
		}
	}
	if whole < p.n {
		p.part(0, 1, whole, p.n).blocked()
	}
}

// rowOfRows adds a chunk of the product of a with b, whose rows are dense, to c, or sets c to it. sums is scratch as
// long as c.
func rowOfRows(c, a []float32, b matrix, sums []float32, add bool) {
	to := c // the first chunk needs no sums of its own
	if add {
		to = sums
	}
	clear(to)
	k := 0
	for ; k+4 <= len(a); k += 4 {
		addRows4(&to[0], &a[k], &b.data[k*b.row], b.row*4, len(c))
	}
	for ; k < len(a); k++ {
		for j := range to {
			to[j] = FMA32(a[k], b.data[k*b.row+j], to[j])
		}
	}
	if add {
		for j, sum := range sums {
			c[j] += sum
		}
	}
}

// rowOfColumns is rowOfRows for b whose columns are dense.
func rowOfColumns(c, a []float32, b matrix, add bool) {
	var sums [16]float32
	for j := 0; j < len(c); j += len(sums) {
		whole := len(a) &^ 3
		clear(sums[:])
		if whole > 0 {
			columns16(&sums[0], &a[0], &b.data[j*b.col], b.col*4, whole)
		}
		for l, sum := range sums {
			for k := whole; k < len(a); k++ {
				sum = FMA32(a[k], b.data[(j+l)*b.col+k], sum)
			}
			if add {
				sum += c[j+l]
			}
			c[j+l] = sum
		}
	}
}
