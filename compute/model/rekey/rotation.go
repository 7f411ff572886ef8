package rekey

import (
	"math/bits"
)

// matrix is [rows, n] in float64. Sums of products are rounded once for each product, so that every machine has the
// same bits.
type matrix struct {
	n int
	m []float64
}

func (m matrix) row(i int) []float64 { return m.m[i*m.n:][:m.n] }

// columns scales the columns.
func (m matrix) columns(by []float64) {
	for i := range m.m {
		m.m[i] *= by[i%m.n]
	}
}

// scaleRows scales the rows.
func (m matrix) scaleRows(by []float64) {
	for i := range by {
		for j := range m.row(i) {
			m.row(i)[j] *= by[i]
		}
	}
}

// rows rotates each row.
func (m matrix) rows(by rotation) {
	for i := range len(m.m) / m.n {
		row := m.row(i)
		for _, g := range by {
			row[g.i], row[g.j] = g.apply(row[g.i], row[g.j])
		}
	}
}

// blocks changes the order of blocks of rows: at each place comes the block of that number.
func (m matrix) blocks(order []int, rows int) {
	size := rows * m.n
	old := append([]float64(nil), m.m...)
	for i, of := range order {
		copy(m.m[i*size:], old[of*size:][:size])
	}
}

// unit is the matrix that changes nothing.
func unit(n int) matrix {
	m := matrix{n: n, m: make([]float64, n*n)}
	for i := range n {
		m.m[i*n+i] = 1
	}
	return m
}

func (m matrix) transposed() matrix {
	rows := len(m.m) / m.n
	t := matrix{n: rows, m: make([]float64, len(m.m))}
	for i := range rows {
		for j := range m.n {
			t.m[j*rows+i] = m.m[i*m.n+j]
		}
	}
	return t
}

// givens rotates two elements.
type givens struct {
	i, j     int
	cos, sin float64
}

func (g givens) apply(x, y float64) (float64, float64) {
	return float64(g.cos*x) - float64(g.sin*y), float64(g.sin*x) + float64(g.cos*y)
}

// rotation is an orthogonal map, as rotations of pairs one after the other: rounds of random pairs of all elements, so
// many that each element depends on all. It costs n log n for a vector, where a dense matrix costs n squared.
type rotation []givens

// rotation draws a rotation of n elements.
func (r random) rotation(n int) (all rotation) {
	for range 2*bits.Len(uint(n)) + 2 {
		order := r.order(n)
		for i := 0; i+1 < n; i += 2 {
			cos, sin := r.angle()
			all = append(all, givens{order[i], order[i+1], cos, sin})
		}
	}
	return all
}

// downwards rotates the elements of each column that begin at a row.
func (all rotation) downwards(m matrix, at int) {
	for _, g := range all {
		a, b := m.row(at+g.i), m.row(at+g.j)
		for j := range a {
			a[j], b[j] = g.apply(a[j], b[j])
		}
	}
}

// turn is what a head of queries and keys is changed by: for each pair that rotary positions turn an angle, and a
// factor, by which queries are multiplied and keys divided.
type turn struct {
	pairs  rotation
	factor []float64
}

// turn draws a turn. Of a model that normalises heads there is none.
func (k *keyed) turn() (t turn) {
	half := k.c.Form.Dim / 2
	if k.c.Form.QKNorm {
		return t
	}
	for i := range half {
		cos, sin := k.angle()
		t.pairs = append(t.pairs, givens{i, i + half, cos, sin})
		t.factor = append(t.factor, 0.5+k.uniform())
	}
	return t
}

// apply changes the rows of a head.
func (t turn) apply(m matrix, at int, keys bool) {
	t.pairs.downwards(m, at)
	for i, g := range t.pairs {
		by := t.factor[i]
		if keys {
			by = 1 / by
		}
		for _, row := range []int{at + g.i, at + g.j} {
			for j := range m.row(row) {
				m.row(row)[j] *= by
			}
		}
	}
}
