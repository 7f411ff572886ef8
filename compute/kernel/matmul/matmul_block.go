package matmul

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/mapped"
	"github.com/starling-network/starling/compute/tensor"
)

// tiling is how a path cuts products.
type tiling struct {
	rows, cols int // of C that a tile kernel keeps in registers
	blockRows  int // rows of A packed at a time: with ChunkK columns they stay in the second-level cache
	blockCols  int // columns of B packed at a time
}

var tilings = [...]tiling{
	kernel.Portable: {rows: 6, cols: 16}, // the grid of several threads only
	kernel.AVX2:     {rows: 6, cols: 16, blockRows: 96, blockCols: 1024},
	kernel.AVX512:   {rows: 14, cols: 32, blockRows: 224, blockCols: 2048},
	kernel.NEON:     {rows: 6, cols: 16}, // the grid of several threads only
}

const (
	maxEdge  = 224 * 32 // elements of C in a panel of any tiling
	panelPad = 16       // elements between packed panels of A, so that they do not fall on the same lines of the cache
	packCols = 256      // columns of B from which on copying dense rows of A pays
	packNear = 128      // columns of B from which on copying a transposed A pays, if its rows have
	nearRow  = 64       // at most as many elements
	strip    = 8        // panels of B packed side by side: reads are long and the pages written few
)

// tiles is the work of one call of a tile kernel: rows rows of C, a tile wide, over one chunk of k. Strides are in
// bytes. The layout is known to the assembly.
type tiles struct {
	a       unsafe.Pointer // element (i, k) of tile t: a + t*aTile + i*aRow + k*aCol
	b       unsafe.Pointer // row k of as many adjacent elements as a tile has columns: b + k*bRow
	c       unsafe.Pointer // row i of adjacent elements: c + i*cRow
	aRow    int
	aCol    int
	aTile   int
	bRow    int // AVX512: 128
	cRow    int
	k       int            // > 0
	rows    int            // > 0
	add     int            // 0: c = sum, 1: c = c + sum
	columns int            // AVX512: bit l is set if column l of C is there; AVX2 has all
	next    unsafe.Pointer // AVX512: what b will be, to fetch
}

// workspace is the memory of one blocked product.
type workspace struct {
	a, b buffer
	edge [maxEdge]float32
}

// buffer is memory that grows. Memory that it has grown out of leaves the process at once.
type buffer struct {
	block *mapped.Block // nil: none yet
}

// room returns the first n elements, contents undefined. A new block has room for a few more, which take no memory
// until they are written, so that the sizes of the products of a program do not each take one.
func (b *buffer) room(n int) []float32 {
	if b.block == nil || len(b.block.Bytes) < 4*n {
		b.free()
		b.block = mapped.New(4 << bits.Len(uint(n-1)))
	}
	return tensor.As[float32](b.block.Bytes[:4*n])
}

func (b *buffer) free() {
	if b.block != nil {
		b.block.Free()
		b.block = nil
	}
}

func (w *workspace) free() {
	w.a.free()
	w.b.free()
}

// workspaces are those that no product uses, as many as there are processors at most.
var workspaces struct {
	sync.Mutex
	free []*workspace
}

func takeWorkspace() *workspace {
	workspaces.Lock()
	defer workspaces.Unlock()
	n := len(workspaces.free)
	if n == 0 {
		return new(workspace)
	}
	w := workspaces.free[n-1]
	workspaces.free = workspaces.free[:n-1]
	return w
}

func (w *workspace) leave() {
	workspaces.Lock()
	defer workspaces.Unlock()
	if len(workspaces.free) < kernel.Cores {
		workspaces.free = append(workspaces.free, w)
		return
	}
	w.free()
}

// Release gives back the memory that products have packed their operands in. The next ones take it again.
func Release() {
	workspaces.Lock()
	defer workspaces.Unlock()
	for _, w := range workspaces.free {
		w.free()
	}
	workspaces.free = nil
}

// blocked computes p with tile kernels over packed blocks (Goto and van de Geijn, Anatomy of high-performance matrix
// multiplication, 2008), chunk of k by chunk of k.
func (p product) blocked() {
	w := takeWorkspace()
	defer w.leave()
	cols := tilings[p.path].blockCols
	for k0 := 0; k0 < p.k; k0 += ChunkK {
		for j0 := 0; j0 < p.n; j0 += cols {
			block := p.part(0, p.m, j0, min(j0+cols, p.n))
			block.a, block.b = p.a.from(0, k0), p.b.from(k0, j0)
			block.k = min(ChunkK, p.k-k0)
			block.chunk(w, p.add || k0 > 0)
		}
	}
}

// chunk computes the sums of a product of at most blockCols columns and ChunkK inner elements, and stores them in c or
// adds them to it.
func (p product) chunk(w *workspace, add bool) {
	s := &tilings[p.path]
	panels := (p.n + s.cols - 1) / s.cols
	packed := w.b.room(panels * s.cols * p.k)
	p.packB(packed, panels)
	t := tiles{bRow: s.cols * 4, k: p.k}
	for i := 0; i < p.m; i += s.blockRows {
		rows := min(s.blockRows, p.m-i)
		a := p.a.from(i, 0)
		t.rows, t.a = rows, unsafe.Pointer(&a.data[0])
		t.aRow, t.aCol, t.aTile = a.row*4, a.col*4, a.row*4*s.rows
		if !p.inPlace(a) {
			p.packA(w, a, rows, &t)
		}
		for j := range panels {
			t.b = unsafe.Pointer(&packed[j*s.cols*p.k])
			t.next = unsafe.Pointer(&packed[(j+1)%panels*s.cols*p.k])
			p.panel(w, &t, i, j*s.cols, add)
		}
	}
}

// inPlace reports whether the tile kernel reads a as it lies in memory: few columns of B do not pay for a copy, unless
// the kernel would jump from line to line for every element.
func (p product) inPlace(a matrix) bool {
	if a.col == 1 {
		return p.n <= packCols
	}
	return p.path == kernel.AVX512 && a.row == 1 && a.col <= nearRow && p.n <= packNear
}

// panel runs the tile kernel for the rows of t from i on and the panel of columns at j. Where C has no adjacent
// columns, or AVX2 too few of them, the sums go through w.edge.
func (p product) panel(w *workspace, t *tiles, i, j int, add bool) {
	width := tilings[p.path].cols
	c := p.c.from(i, j)
	cols := min(width, p.n-j)
	t.columns = 1<<cols - 1
	if c.col == 1 && (cols == width || p.path == kernel.AVX512) {
		t.c, t.cRow, t.add = unsafe.Pointer(&c.data[0]), c.row*4, 0
		if add {
			t.add = 1
		}
		t.run(p.path)
		return
	}
	t.c, t.cRow, t.add = unsafe.Pointer(&w.edge[0]), width*4, 0
	t.run(p.path)
	for r := range t.rows {
		for l, sum := range w.edge[r*width:][:cols] {
			x := &c.data[r*c.row+l*c.col]
			if add {
				sum += *x
			}
			*x = sum
		}
	}
}

// packB writes the columns of b to dst, panel after panel, the missing columns of the last one 0.
func (p product) packB(dst []float32, panels int) {
	size, done := tilings[p.path].cols*p.k, 0
	if whole := p.n / tilings[p.path].cols; p.path == kernel.AVX512 && p.b.col == 1 {
		for ; done < whole; done += min(strip, whole-done) {
			panels512(&dst[done*size], &p.b.data[done*tilings[p.path].cols], size*4, p.b.row*4, min(strip, whole-done), p.k)
		}
	}
	for j := done; j < panels; j++ {
		l := j * tilings[p.path].cols
		p.packPanel(dst[j*size:][:size], p.b.from(0, l), min(tilings[p.path].cols, p.n-l))
	}
}

// packPanel writes the rows of b, of cols columns, to dst, each as wide as a tile, the missing columns 0.
func (p product) packPanel(dst []float32, b matrix, cols int) {
	width := tilings[p.path].cols
	if b.col == 1 && p.path == kernel.AVX512 {
		edge512(&dst[0], &b.data[0], b.row*4, p.k, 1<<cols-1)
		return
	}
	if b.col == 1 && cols == width {
		copy16(&dst[0], &b.data[0], b.row*4, p.k)
		return
	}
	if cols < width {
		clear(dst)
	}
	rows, columns := 0, 0 // the corner that assembly transposes
	if b.row == 1 && p.k >= 16 {
		rows, columns = p.k&^15, cols&^15
		for l := 0; l < columns; l += 16 {
			if p.path == kernel.AVX512 {
				Transpose512(&dst[l], &b.data[l*b.col], b.col*4, rows)
			} else {
				transpose16(&dst[l], &b.data[l*b.col], b.col*4, rows)
			}
		}
	}
	for i := range p.k {
		l := 0
		if i < rows {
			l = columns
		}
		for ; l < cols; l++ {
			dst[i*width+l] = b.data[i*b.row+l*b.col]
		}
	}
}

// packA copies rows x k elements of a to w.a and points t at the copy: row after row if rows are dense in a, else tile
// after tile.
func (p product) packA(w *workspace, a matrix, rows int, t *tiles) {
	height := tilings[p.path].rows
	if a.col == 1 {
		stride := p.k + panelPad
		packed := w.a.room(rows * stride)
		for i := range rows {
			copy(packed[i*stride:][:p.k], a.data[i*a.row:])
		}
		t.a, t.aRow, t.aCol, t.aTile = unsafe.Pointer(&packed[0]), stride*4, 4, stride*4*height
		return
	}
	stride := p.k*height + panelPad
	packed := w.a.room((rows/height + 1) * stride)
	t.a, t.aRow, t.aCol, t.aTile = unsafe.Pointer(&packed[0]), 4, height*4, stride*4
	done, whole := 0, rows/height
	switch {
	case a.row != 1:
	case p.path == kernel.AVX512:
		done = rows
		if whole > 0 {
			slivers512(&packed[0], &a.data[0], stride*4, a.col*4, whole, p.k, 1<<height-1)
		}
		if edge := rows % height; edge > 0 {
			slivers512(&packed[whole*stride], &a.data[whole*height], stride*4, a.col*4, 1, p.k, 1<<edge-1)
		}
	case whole > 0:
		done = whole * height
		slivers6(&packed[0], &a.data[0], stride*4, a.col*4, whole, p.k)
	}
	for i := done; i < rows; i++ {
		panel := packed[i/height*stride+i%height:]
		for l := range p.k {
			panel[l*height] = a.data[i*a.row+l*a.col]
		}
	}
}
