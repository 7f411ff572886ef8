package kernel

import (
	"sync"
	"unsafe"
)

const (
	tileRows = 6 // rows and columns of C that a tile kernel keeps in registers
	tileCols = 16

	blockRows = 96   // rows of A packed at a time: with ChunkK columns they stay in the second-level cache
	blockCols = 1024 // columns of B packed at a time
	panelPad  = 16   // elements between packed panels of A, so that they do not fall on the same lines of the cache
	packCols  = 256  // columns of B from which on copying dense rows of A pays
)

// tiles is the work of one call of a tile kernel: rows rows of C, tileCols wide, over one chunk of k. Strides are in
// bytes. The layout is known to the assembly.
type tiles struct {
	a     unsafe.Pointer // element (i, k) of tile t: a + t*aTile + i*aRow + k*aCol
	b     unsafe.Pointer // row k of 16 adjacent elements: b + k*bRow
	c     unsafe.Pointer // row i of 16 adjacent elements: c + i*cRow
	aRow  int
	aCol  int
	aTile int
	bRow  int
	cRow  int
	k     int // > 0
	rows  int // > 0
	add   int // 0: c = sum, 1: c = c + sum
}

// workspace is the memory of one blocked product.
type workspace struct {
	a, b []float32
	edge [blockRows * tileCols]float32
}

var workspaces = sync.Pool{New: func() any { return new(workspace) }}

// room returns s resized to n elements, contents undefined.
func room(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}

// blocked computes p with tile kernels over packed blocks (Goto and van de Geijn, Anatomy of high-performance matrix
// multiplication, 2008), chunk of k by chunk of k.
func (p product) blocked() {
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	for k0 := 0; k0 < p.k; k0 += ChunkK {
		for j0 := 0; j0 < p.n; j0 += blockCols {
			block := p.part(0, p.m, j0, min(j0+blockCols, p.n))
			block.a, block.b = p.a.from(0, k0), p.b.from(k0, j0)
			block.k = min(ChunkK, p.k-k0)
			block.chunk(w, p.add || k0 > 0)
		}
	}
}

// chunk computes the sums of a product of at most blockCols columns and ChunkK inner elements, and stores them in c or
// adds them to it.
func (p product) chunk(w *workspace, add bool) {
	panels := (p.n + tileCols - 1) / tileCols
	w.b = room(w.b, panels*tileCols*p.k)
	for j := range panels {
		packB(w.b[j*tileCols*p.k:][:tileCols*p.k], p.b.from(0, j*tileCols), p.k, min(tileCols, p.n-j*tileCols))
	}
	t := tiles{bRow: tileCols * 4, k: p.k}
	for i := 0; i < p.m; i += blockRows {
		rows := min(blockRows, p.m-i)
		a := p.a.from(i, 0)
		t.rows, t.a = rows, unsafe.Pointer(&a.data[0])
		t.aRow, t.aCol, t.aTile = a.row*4, a.col*4, a.row*4*tileRows
		if a.col != 1 || p.n > packCols {
			w.packA(a, rows, p.k, &t)
		}
		for j := range panels {
			t.b = unsafe.Pointer(&w.b[j*tileCols*p.k])
			p.panel(w, &t, i, j*tileCols, add)
		}
	}
}

// panel runs the tile kernel for the rows of t from i on and the panel of columns at j. Where C has no 16 adjacent
// columns the sums go through w.edge.
func (p product) panel(w *workspace, t *tiles, i, j int, add bool) {
	c := p.c.from(i, j)
	cols := min(tileCols, p.n-j)
	if cols == tileCols && c.col == 1 {
		t.c, t.cRow, t.add = unsafe.Pointer(&c.data[0]), c.row*4, 0
		if add {
			t.add = 1
		}
		runTiles(t)
		return
	}
	t.c, t.cRow, t.add = unsafe.Pointer(&w.edge[0]), tileCols*4, 0
	runTiles(t)
	for r := range t.rows {
		for l, sum := range w.edge[r*tileCols:][:cols] {
			x := &c.data[r*c.row+l*c.col]
			if add {
				sum += *x
			}
			*x = sum
		}
	}
}

// packB writes the k rows and cols <= 16 columns of b to dst, 16 elements a row, the missing columns 0.
func packB(dst []float32, b matrix, k, cols int) {
	if cols < tileCols {
		clear(dst)
		for l := range cols {
			for i := range k {
				dst[i*tileCols+l] = b.data[i*b.row+l*b.col]
			}
		}
		return
	}
	if b.col == 1 {
		copy16(&dst[0], &b.data[0], b.row*4, k)
		return
	}
	done := 0
	if b.row == 1 && k >= 8 {
		done = k &^ 7
		transpose16(&dst[0], &b.data[0], b.col*4, done)
	}
	for i := done; i < k; i++ {
		for l := range tileCols {
			dst[i*tileCols+l] = b.data[i*b.row+l*b.col]
		}
	}
}

// packA copies rows x k elements of a to w.a and points t at the copy: row after row if rows are dense in a, else tile
// after tile.
func (w *workspace) packA(a matrix, rows, k int, t *tiles) {
	if a.col == 1 {
		stride := k + panelPad
		w.a = room(w.a, rows*stride)
		for i := range rows {
			copy(w.a[i*stride:][:k], a.data[i*a.row:])
		}
		t.a, t.aRow, t.aCol, t.aTile = unsafe.Pointer(&w.a[0]), stride*4, 4, stride*4*tileRows
		return
	}
	stride := k*tileRows + panelPad
	w.a = room(w.a, (rows/tileRows+1)*stride)
	t.a, t.aRow, t.aCol, t.aTile = unsafe.Pointer(&w.a[0]), 4, tileRows*4, stride*4
	done := 0
	if a.row == 1 && rows >= tileRows {
		done = rows / tileRows * tileRows
		slivers6(&w.a[0], &a.data[0], stride*4, a.col*4, rows/tileRows, k)
	}
	for i := done; i < rows; i++ {
		panel := w.a[i/tileRows*stride+i%tileRows:]
		for l := range k {
			panel[l*tileRows] = a.data[i*a.row+l*a.col]
		}
	}
}
