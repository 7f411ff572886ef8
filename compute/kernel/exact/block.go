package exact

import (
	"sync"
	"unsafe"

	"github.com/starling-network/starling/compute/kernel"
)

const (
	tileRows = 4    // of C that a tile kernel keeps in registers
	lanes    = 16   // integers of B of one k that a tile kernel multiplies: columns of C, or at 15 bits half as many
	chunk    = 1024 // elements of k that are packed at a time, a multiple of every block
	strip    = 1024 // columns of B that are packed at a time, a multiple of lanes
	step     = 4    // elements of k of one turn of a tile kernel

	maxColumns = 2 * group // of a tile
)

// packed is the integers of a chunk of A and of a strip of it of B, and their scales.
//
// A row of A is its integers along k. A panel of B holds, for each two elements of k, the two integers of each of lanes
// columns; at 15 bits those of half as many columns are written as 128*h+l, |h| <= 127 and -64 <= l <= 63: first the h,
// then the l, so that no sum of products with integers of A leaves 32 bits.
type packed struct {
	a, b           []int16
	scaleA, scaleB []float32 // of row and block; of panel, block and column
}

var (
	pool    = sync.Pool{New: func() any { return new(packed) }}
	pool512 = sync.Pool{New: func() any { return new(packed512) }}
)

// room returns s resized to n elements, contents undefined.
func room[E int16 | float32 | uint8 | int32](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	return s[:n]
}

// columns is the number of columns of C of one panel.
func (f Form) columns() int {
	if f.Bits == 8 {
		return lanes
	}
	return lanes / 2
}

// blocked computes p chunk of k by chunk of k, and strip of B by strip.
func (p *Product) blocked(threads int) {
	w := pool.Get().(*packed)
	defer pool.Put(w)
	for k0 := 0; k0 < p.K; k0 += chunk {
		s := span{Product: p, k0: k0, k: min(chunk, p.K-k0)}
		s.padded = (s.k + step - 1) / step * step
		s.blocks = (s.k + p.Form.Block - 1) / p.Form.Block
		s.packRows(w, threads)
		for j0 := 0; j0 < p.N; j0 += strip {
			s.j0, s.n = j0, min(strip, p.N-j0)
			s.packPanels(w, threads)
			s.multiply(w, threads)
		}
	}
}

// span is a chunk of k and a strip of columns of a product.
type span struct {
	*Product
	k0, k  int
	padded int // k, up to a whole step
	blocks int
	j0, n  int
}

// block gathers block b of a line of k elements that begins at an element of x.
func (s *span) block(to, x []float32, at, along, b int) []float32 {
	lo, hi := b*s.Form.Block, min((b+1)*s.Form.Block, s.k)
	at += (s.k0 + lo) * along
	if along == 1 {
		return x[at : at+hi-lo]
	}
	to = to[:hi-lo]
	for i := range to {
		to[i] = x[at]
		at += along
	}
	return to
}

// packRows writes the integers of A. Block by block, so that lines of a transposed matrix are read while they are in
// the cache.
func (s *span) packRows(w *packed, threads int) {
	rows := (s.M + tileRows - 1) / tileRows * tileRows // those that are not there are multiplied and not used
	w.a, w.scaleA = room(w.a, rows*s.padded), room(w.scaleA, rows*s.blocks)
	kernel.Parallel(threads, s.M, func(lo, hi int) {
		var line [maxBlock]float32
		for b := range s.blocks {
			for i := lo; i < hi; i++ {
				x := s.block(line[:], s.A, i*s.ARow, s.ACol, b)
				to := w.a[i*s.padded+b*s.Form.Block : i*s.padded+min((b+1)*s.Form.Block, s.padded)]
				w.scaleA[i*s.blocks+b] = s.Form.quantise(to, x)
				clear(to[len(x):])
			}
		}
	})
}

// packPanels writes the integers of a strip of B; columns that are not there are zero.
func (s *span) packPanels(w *packed, threads int) {
	columns := s.Form.columns()
	panels := (s.n + columns - 1) / columns
	w.b, w.scaleB = room(w.b, panels*s.padded*lanes), room(w.scaleB, panels*s.blocks*columns)
	kernel.Parallel(threads, panels, func(lo, hi int) {
		var line [maxBlock]float32
		var integers [maxBlock]int16
		for t := lo; t < hi; t++ {
			panel := w.b[t*s.padded*lanes : (t+1)*s.padded*lanes]
			if (t+1)*columns > s.n {
				clear(panel)
			}
			for b := range s.blocks {
				from, to := b*s.Form.Block, min((b+1)*s.Form.Block, s.padded)
				scales := w.scaleB[(t*s.blocks+b)*columns : (t*s.blocks+b+1)*columns]
				clear(scales)
				for j := range min(columns, s.n-t*columns) {
					x := s.block(line[:], s.B, (s.j0+t*columns+j)*s.BCol, s.BRow, b)
					scales[j] = s.Form.quantise(integers[:], x)
					clear(integers[len(x) : to-from])
					s.interleave(panel[from*lanes:], integers[:to-from], j)
				}
			}
		}
	})
}

// interleave writes the integers of column j of a block to a panel.
func (s *span) interleave(panel, integers []int16, j int) {
	if s.Form.Bits == 8 {
		for k := 0; k < len(integers); k += 2 {
			pair := panel[k*lanes+2*j : k*lanes+2*j+2]
			pair[0], pair[1] = integers[k], integers[k+1]
		}
		return
	}
	for k := 0; k < len(integers); k += 2 {
		high, low := panel[k*lanes+2*j:k*lanes+2*j+2], panel[k*lanes+lanes+2*j:k*lanes+lanes+2*j+2]
		x, y := int32(integers[k]), int32(integers[k+1])
		hx, hy := (x+64)>>7, (y+64)>>7
		high[0], high[1] = int16(hx), int16(hy)
		low[0], low[1] = int16(x-hx<<7), int16(y-hy<<7)
	}
}

// multiply adds the chunk's products to the strip of C, in tiles.
func (s *span) multiply(w *packed, threads int) {
	columns := s.Form.columns()
	s.tiles(threads, s.j0, s.n, columns, func(i, t int, c []float32, cRow int) {
		x := tile{
			form: s.Form, rows: min(tileRows, s.M-i), a: w.a[i*s.padded:], aRow: s.padded, b: w.b[t*s.padded*lanes:],
			c: c, cRow: cRow, scaleA: w.scaleA[i*s.blocks:], scaleB: w.scaleB[t*s.blocks*columns:], blocks: s.blocks,
			k: s.padded,
		}
		if s.Path == kernel.Portable {
			x.portable()
		} else {
			x.assembly()
		}
	})
}

// tiles calls add for every tile of n columns of C from j0 on: of the rows from i on, and of panel t of some columns. c
// is the tile, with cRow elements between its rows. At an edge of C it is a copy, of which the part in C is kept.
func (p *Product) tiles(threads, j0, n, columns int, add func(i, t int, c []float32, cRow int)) {
	panels, groups := (n+columns-1)/columns, (p.M+tileRows-1)/tileRows
	// Parts of several rows where there are fewer panels than threads.
	cut := 1
	if panels < threads {
		cut = min(groups, (threads+panels-1)/panels)
	}
	kernel.Parallel(threads, panels*cut, func(lo, hi int) {
		var edge [tileRows * maxColumns]float32
		for part := lo; part < hi; part++ {
			t, of := part/cut, part%cut
			for g := of * groups / cut; g < (of+1)*groups/cut; g++ {
				i, j := g*tileRows, j0+t*columns
				rows, cols := min(tileRows, p.M-i), min(columns, j0+n-j)
				c := p.C[i*p.CRow+j:]
				if rows == tileRows && cols == columns {
					add(i, t, c, p.CRow)
					continue
				}
				for r := range rows {
					copy(edge[r*columns:], c[r*p.CRow:r*p.CRow+cols])
				}
				add(i, t, edge[:], columns)
				for r := range rows {
					copy(c[r*p.CRow:r*p.CRow+cols], edge[r*columns:])
				}
			}
		}
	})
}

// tile is up to tileRows rows of C and the columns of one panel, over a chunk of k.
type tile struct {
	form           Form
	rows           int
	a, b           []int16
	aRow           int
	c              []float32
	cRow           int
	scaleA, scaleB []float32
	blocks, k      int
}

// portable is the specification of a tile.
func (t *tile) portable() {
	columns := t.form.columns()
	for b := range t.blocks {
		from, to := b*t.form.Block, min((b+1)*t.form.Block, t.k)
		for r := range t.rows {
			for j := range columns {
				sum := t.sum(r, j, from, to)
				scale := t.scaleA[r*t.blocks+b] * t.scaleB[b*columns+j]
				t.c[r*t.cRow+j] += float32(float32(sum) * scale)
			}
		}
	}
}

// sum is the exact sum of products of row r and column j over elements of k.
func (t *tile) sum(r, j, from, to int) int64 {
	a, sum, low := t.a[r*t.aRow:], int64(0), int64(0)
	for k := from; k < to; k += 2 {
		x, y := int64(a[k]), int64(a[k+1])
		sum += x*int64(t.b[k*lanes+2*j]) + y*int64(t.b[k*lanes+2*j+1])
		if t.form.Bits == 15 {
			low += x*int64(t.b[(k+1)*lanes+2*j]) + y*int64(t.b[(k+1)*lanes+2*j+1])
		}
	}
	if t.form.Bits == 15 {
		return sum<<7 + low
	}
	return sum
}

// arguments is the work of one call of runExact. Strides are in bytes. The layout is known to the assembly.
type arguments struct {
	a, b, c        unsafe.Pointer
	scaleA, scaleB unsafe.Pointer
	aRow, cRow     int
	scaleRow       int
	turns          int // of step elements, in a block; > 0
	blocks         int // > 0
	wide           int // 0: 8 bits, 1: 15
}

// assembly is portable by the tile kernel, which takes tileRows rows, also at the edge.
func (t *tile) assembly() {
	columns, full := t.form.columns(), t.k/t.form.Block
	x := arguments{
		a: unsafe.Pointer(&t.a[0]), b: unsafe.Pointer(&t.b[0]), c: unsafe.Pointer(&t.c[0]),
		scaleA: unsafe.Pointer(&t.scaleA[0]), scaleB: unsafe.Pointer(&t.scaleB[0]),
		aRow: 2 * t.aRow, cRow: 4 * t.cRow, scaleRow: 4 * t.blocks,
		turns: t.form.Block / step, blocks: full,
	}
	if t.form.Bits == 15 {
		x.wide = 1
	}
	if full > 0 {
		runExact(&x)
	}
	if rest := t.k - full*t.form.Block; rest > 0 {
		x.a, x.b = unsafe.Pointer(&t.a[full*t.form.Block]), unsafe.Pointer(&t.b[full*t.form.Block*lanes])
		x.scaleA, x.scaleB = unsafe.Pointer(&t.scaleA[full]), unsafe.Pointer(&t.scaleB[full*columns])
		x.turns, x.blocks = rest/step, 1
		runExact(&x)
	}
}
