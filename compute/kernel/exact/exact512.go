package exact

import (
	"unsafe"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/matmul"
)

// VNNI reports whether products of the active path use AVX-512 VNNI.
func VNNI() bool { return multiplies && kernel.Active() == kernel.AVX512 }

const (
	group    = 16  // lines (rows of A, columns of B) whose integers are found at once
	chunk512 = 512 // elements of k that are packed at a time, a multiple of every block
	strip512 = 1024
	turn     = 4 * group // bytes of the integers of a group that a turn of a tile kernel multiplies
)

// span512 is span for processors that multiply and add integers in one instruction.
//
// A turn is four elements of k at 8 bits and two at 15. For each turn a group of rows of A holds its integers, row
// after row; so does a group of columns of B, at 15 bits first the h of their integers and then the l. A panel of B has
// two groups of 8 bits, or one of 15. At 8 bits the integers of B are raised by 128 to numbers without a sign, as the
// instruction has one operand without; -128 times the sum of a block of A is its bias.
type span512 struct {
	*Product
	k0, k  int
	turns  int // of k
	blocks int
	j0, n  int
	w      *packed512
}

// packed512 is the integers of a chunk of A and of a strip of it of B, and for each block their scales and biases.
type packed512 struct {
	a, b           []uint8
	scaleA, scaleB []float32
	biases         []int32
}

// perTurn is the elements of k of one turn.
func (f Form) perTurn() int {
	if f.Bits == 8 {
		return 4
	}
	return 2
}

// groups is the number of groups of columns of one panel of span512.
func (f Form) groups() int {
	if f.Bits == 8 {
		return 2
	}
	return 1
}

// blocked512 is blocked.
func (p *Product) blocked512(threads int) {
	w := pool512.Get().(*packed512)
	defer pool512.Put(w)
	for k0 := 0; k0 < p.K; k0 += chunk512 {
		s := span512{Product: p, k0: k0, k: min(chunk512, p.K-k0), w: w}
		s.turns = (s.k + p.Form.perTurn() - 1) / p.Form.perTurn()
		s.blocks = (s.k + p.Form.Block - 1) / p.Form.Block
		s.packRows(threads)
		for j0 := 0; j0 < p.N; j0 += strip512 {
			s.j0, s.n = j0, min(strip512, p.N-j0)
			s.packPanels(threads)
			s.multiply(threads)
		}
	}
}

// packRows writes the integers of A.
func (s *span512) packRows(threads int) {
	groups := (s.M + group - 1) / group
	s.w.a = room(s.w.a, groups*s.turns*turn)
	s.w.scaleA, s.w.biases = room(s.w.scaleA, groups*s.blocks*group), room(s.w.biases, groups*s.blocks*group)
	kind := left8
	if s.Form.Bits == 15 {
		kind = left15
	}
	kernel.Parallel(threads, groups, func(lo, hi int) {
		var copied [maxBlock * copyStride]float32
		for g := lo; g < hi; g++ {
			for b := range s.blocks {
				x := s.lines(&copied, s.A, g*group, s.ARow, s.M, s.ACol, b)
				x.out, x.outStep = unsafe.Pointer(&s.w.a[(g*s.turns+b*s.Form.Block/s.Form.perTurn())*turn]), turn
				x.scales = &s.w.scaleA[(g*s.blocks+b)*group]
				x.biases = &s.w.biases[(g*s.blocks+b)*group]
				x.kind = kind
				quantise512(&x)
			}
		}
	})
}

// packPanels writes the integers of a strip of B.
func (s *span512) packPanels(threads int) {
	groups := s.Form.groups()
	panels := (s.n + groups*group - 1) / (groups * group)
	s.w.b, s.w.scaleB = room(s.w.b, panels*s.turns*2*turn), room(s.w.scaleB, panels*s.blocks*groups*group)
	kind := right8
	if s.Form.Bits == 15 {
		kind = right15
	}
	kernel.Parallel(threads, panels, func(lo, hi int) {
		var copied [maxBlock * copyStride]float32
		for t := lo; t < hi; t++ {
			for b := range s.blocks {
				for g := range groups {
					x := s.lines(&copied, s.B, s.j0+(t*groups+g)*group, s.BCol, s.j0+s.n, s.BRow, b)
					x.out = unsafe.Pointer(&s.w.b[(t*s.turns+b*s.Form.Block/s.Form.perTurn())*2*turn+g*turn])
					x.outStep = 2 * turn
					x.scales = &s.w.scaleB[((t*s.blocks+b)*groups+g)*group]
					x.kind = kind
					quantise512(&x)
				}
			}
		}
	})
}

// copyStride is the elements between rows of a copy, as matmul.Transpose512 writes them.
const copyStride = 32

// lines is block b of the group of lines that begins at a line, of count lines in data with a step between lines and
// one along k. Adjacent lines are read where they are; others are copied.
func (s *span512) lines(copied *[maxBlock * copyStride]float32, data []float32, line, step, count, along, b int) lines {
	lo, hi := b*s.Form.Block, min((b+1)*s.Form.Block, s.k)
	lanes, k := max(0, min(group, count-line)), hi-lo
	at := (s.k0+lo)*along + line*step
	x := lines{stride: 4 * copyStride, rows: k, lanes: 1<<lanes - 1}
	switch per := s.Form.perTurn(); {
	case lanes == 0: // a whole group of the panel is not there
		x.rows = (k + per - 1) / per * per
		x.from = &copied[0]
	case step == 1 && k%per == 0:
		x.from, x.stride = &data[at], 4*along
	case along == 1 && lanes == group && k%16 == 0:
		matmul.Transpose512(&copied[0], &data[at], 4*step, k)
		x.from = &copied[0]
	default:
		x.rows = (k + per - 1) / per * per
		clear(copied[k*copyStride : x.rows*copyStride])
		for i := range k {
			for l := range lanes {
				copied[i*copyStride+l] = data[at+i*along+l*step]
			}
		}
		x.from = &copied[0]
	}
	x.top, x.bits = s.Form.mantissa()
	return x
}

// multiply adds the chunk's products to the strip of C, in tiles.
func (s *span512) multiply(threads int) {
	columns := s.Form.groups() * group
	full, perBlock := s.k/s.Form.Block, s.Form.Block/s.Form.perTurn()
	s.tiles(threads, s.j0, s.n, columns, func(i, t int, c []float32, cRow int) {
		if full > 0 {
			s.run(i, t, c, cRow, 0, full, perBlock)
		}
		if rest := s.turns - full*perBlock; rest > 0 {
			s.run(i, t, c, cRow, full, 1, rest)
		}
	})
}

// run adds blocks from one on, of the given turns each, to the tile c of the rows from i on and the columns of panel t.
func (s *span512) run(i, t int, c []float32, cRow, block, blocks, turns int) {
	g, in, at := i/group, i%group, block*s.Form.Block/s.Form.perTurn()
	x := arguments512{
		a:      unsafe.Pointer(&s.w.a[(g*s.turns+at)*turn+4*in]),
		b:      unsafe.Pointer(&s.w.b[(t*s.turns+at)*2*turn]),
		c:      unsafe.Pointer(&c[0]),
		scaleA: unsafe.Pointer(&s.w.scaleA[(g*s.blocks+block)*group+in]),
		biases: unsafe.Pointer(&s.w.biases[(g*s.blocks+block)*group+in]),
		scaleB: unsafe.Pointer(&s.w.scaleB[(t*s.blocks+block)*s.Form.groups()*group]),
		cRow:   4 * cRow, turns: turns, blocks: blocks,
	}
	if s.Form.Bits == 8 {
		runNarrow512(&x)
	} else {
		runWide512(&x)
	}
}

// lines is the work of one call of quantise512: rows elements of k of up to group adjacent lines. Strides are
// in bytes. The layout is known to the assembly.
type lines struct {
	from    *float32
	stride  int
	rows    int // a multiple of the elements of a turn; > 0
	lanes   int // a bit for each line that is there; the others are zero
	out     unsafe.Pointer
	outStep int // between turns
	scales  *float32
	biases  *int32 // of kind left8
	top     int32  // see Form.mantissa
	bits    int32
	kind    int
}

// Kinds of integers: of A and of B, of 8 bits and of 15.
const (
	left8 = iota
	right8
	left15
	right15
)

// arguments512 is the work of one call of runNarrow512 or runWide512. Strides are in bytes. The layout is known to the
// assembly.
type arguments512 struct {
	a, b, c                unsafe.Pointer
	scaleA, biases, scaleB unsafe.Pointer
	cRow                   int
	turns                  int // of a block; > 0
	blocks                 int // > 0
}
