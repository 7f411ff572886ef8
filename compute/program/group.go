package program

import (
	"slices"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

const maxGroup = 64 // operators of a group

// How groups are cut. Results do not depend on it; the tests set small values.
var (
	tileElements = 1024    // elements of a tile: a few tiles of float32 fit the first-level cache
	minParallel  = 1 << 15 // elements times operators below which a step runs on one thread
)

// A group is a step of elementwise operators on values of n elements each, run tile by tile: values that no other step
// reads never leave the cache. Every element is computed exactly as by the operators one after the other.
type group struct {
	n      int
	values []groupValue
	code   []groupOp // in an order of dependence
}

// A groupValue is read from a store or made by an operator of the group.
type groupValue struct {
	from  *loc // where it is read from; nil if it is made here
	whole bool // the lane takes all of from, not a tile: scalars of Adam
	size  int  // bytes of an element
	store int  // where it is put if others read it; -1 until somebody asks
}

type groupOp struct {
	run lane
	in  []int // values
	out int   // value
}

// read returns the value of the group that reads from l.
func (g *group) read(l loc, whole bool, size int) int {
	if !whole {
		l = l.through(l.Merged())
	}
	for i, v := range g.values {
		if v.from != nil && v.whole == whole && v.from.store == l.store && v.from.Offset == l.Offset &&
			slices.Equal(v.from.Dims, l.Dims) && slices.Equal(v.from.Strides, l.Strides) {
			return i
		}
	}
	g.values = append(g.values, groupValue{from: &l, whole: whole, size: size, store: l.store})
	return len(g.values) - 1
}

// made returns the value that an operator of the group puts into the store, or -1.
func (g *group) made(store int) int {
	for i, v := range g.values {
		if v.from == nil && v.store == store {
			return i
		}
	}
	return -1
}

// A register is where a value is while its tile is worked on.
type register struct {
	direct bool // in the memory of a store, not in scratch
	whole  bool // the rest of the store, not a tile
	fixed  bool // filled once, for all tiles
	store  int
	offset int // bytes: in the store, or in the scratch memory of the worker
	size   int
}

// An instruction fills the register out, from a view or by a lane.
type instruction struct {
	load *loc
	run  lane
	in   []int
	out  int
}

// A tiler runs a group.
type tiler struct {
	n, tile   int
	registers []register
	once      []instruction // loads that are the same for every tile
	code      []instruction
	scratch   int // bytes that a worker needs
	work      int // elements times operators
}

// compile assigns registers. kept reports whether others need what is put into a store.
func (g *group) compile(kept func(store int) bool) *tiler {
	t := &tiler{n: g.n, tile: g.tileSize(), work: g.n * len(g.code)}
	last := make([]int, len(g.values)) // the last operator that reads a value
	for i, op := range g.code {
		for _, v := range op.in {
			last[v] = i
		}
	}
	free := map[int][]int{} // offsets of dead scratch registers, by size of the element
	alloc := func(size int) int {
		if list := free[size]; len(list) > 0 {
			free[size] = list[:len(list)-1]
			return list[len(list)-1]
		}
		t.scratch += alignUp(t.tile * size)
		return t.scratch - alignUp(t.tile*size)
	}
	ready := make([]bool, len(g.values))
	t.registers = make([]register, len(g.values))
	for i, op := range g.code {
		for _, v := range op.in {
			if val := &g.values[v]; val.from != nil && !ready[v] {
				ready[v] = true
				t.addLoad(v, val, alloc)
			}
		}
		out := &g.values[op.out]
		r := register{direct: kept(out.store), store: out.store, size: out.size}
		dead := t.dying(op.in, last, i)
		// A lane may write over an operand of the same size: take back its register first.
		for _, v := range dead {
			free[t.registers[v].size] = append(free[t.registers[v].size], t.registers[v].offset)
		}
		if !r.direct {
			r.offset = alloc(r.size)
		}
		t.registers[op.out] = r
		t.code = append(t.code, instruction{run: op.run, in: op.in, out: op.out})
	}
	return t
}

// addLoad makes value v, which is read from a store, available.
func (t *tiler) addLoad(v int, val *groupValue, alloc func(size int) int) {
	r := register{direct: true, whole: val.whole, store: val.from.store, offset: val.from.Offset * val.size,
		size: val.size}
	if val.whole || val.from.Contiguous() {
		t.registers[v] = r
		return
	}
	load := instruction{load: val.from, out: v}
	if p := val.from.Period(); p > 0 && t.tile%p == 0 {
		t.once = append(t.once, load)
		t.scratch += alignUp(t.tile * val.size)
		r.offset = t.scratch - alignUp(t.tile*val.size)
		r.fixed = true
	} else {
		t.code = append(t.code, load)
		r.offset = alloc(val.size)
	}
	r.direct = false
	t.registers[v] = r
}

// dying lists the values in scratch registers whose last reader is operator i, each once.
func (t *tiler) dying(in []int, last []int, i int) []int {
	var dead []int
	for _, v := range in {
		if r := t.registers[v]; last[v] == i && !r.direct && !r.fixed && !slices.Contains(dead, v) {
			dead = append(dead, v)
		}
	}
	return dead
}

// tileSize is a number of elements near tileElements that the periods of the views divide, as far as possible.
func (g *group) tileSize() int {
	longest := 1
	for _, v := range g.values {
		if v.from != nil && !v.whole && !v.from.Contiguous() {
			if p := v.from.Period(); p <= tileElements {
				longest = max(longest, p)
			}
		}
	}
	return min(tileElements/longest*longest, g.n)
}

// run computes the group on the memory of x.
func (t *tiler) run(x *Exec) {
	tiles := (t.n + t.tile - 1) / t.tile
	workers := min(len(x.workers), tiles)
	if t.work < minParallel {
		workers = 1
	}
	if workers == 1 {
		t.runTiles(x, &x.workers[0], 0, tiles)
		return
	}
	kernel.Parallel(workers, workers, func(lo, hi int) {
		for w := lo; w < hi; w++ {
			t.runTiles(x, &x.workers[w], w*tiles/workers, (w+1)*tiles/workers)
		}
	})
}

func (t *tiler) runTiles(x *Exec, w *worker, from, to int) {
	for i, r := range t.registers {
		switch {
		case r.direct && r.whole:
			w.registers[i] = x.memory[r.store][r.offset:]
		case !r.direct:
			w.registers[i] = w.scratch[r.offset : r.offset+t.tile*r.size]
		}
	}
	for _, in := range t.once {
		t.load(x, w, in, 0)
	}
	for k := from; k < to; k++ {
		lo, hi := k*t.tile, min((k+1)*t.tile, t.n)
		for i, r := range t.registers {
			if r.direct && !r.whole {
				w.registers[i] = x.memory[r.store][r.offset+lo*r.size : r.offset+hi*r.size]
			} else if !r.direct {
				w.registers[i] = w.registers[i][:(hi-lo)*r.size]
			}
		}
		for _, in := range t.code {
			if in.load != nil {
				t.load(x, w, in, lo)
				continue
			}
			operands := w.operands[:len(in.in)]
			for i, v := range in.in {
				operands[i] = w.registers[v]
			}
			in.run(w.registers[in.out], operands)
		}
	}
}

func (t *tiler) load(x *Exec, w *worker, in instruction, lo int) {
	dst, src := w.registers[in.out], x.memory[in.load.store]
	switch t.registers[in.out].size {
	case 1:
		kernel.Load(dst, src, &in.load.View, lo)
	case 2:
		kernel.Load(tensor.As[uint16](dst), tensor.As[uint16](src), &in.load.View, lo)
	case 4:
		kernel.Load(tensor.As[uint32](dst), tensor.As[uint32](src), &in.load.View, lo)
	case 8:
		kernel.Load(tensor.As[int64](dst), tensor.As[int64](src), &in.load.View, lo)
	}
}

// uses says when the group last reads each store that it reads, as the position of an operator. A store that is not
// read whole, in order and element by element, is read until the end.
func (g *group) uses(stores []store) map[int]int {
	last := map[int]int{}
	for i, op := range g.code {
		for _, v := range op.in {
			val := &g.values[v]
			switch {
			case val.from == nil:
			case val.whole || val.from.Offset != 0 || !val.from.Contiguous() || stores[val.store].bytes != g.n*val.size:
				last[val.store] = len(g.code)
			default:
				last[val.store] = max(last[val.store], i)
			}
		}
	}
	return last
}

// makes says which operator makes each store.
func (g *group) makes() map[int]int {
	at := map[int]int{}
	for i, op := range g.code {
		at[g.values[op.out].store] = i
	}
	return at
}

func alignUp(n int) int { return (n + tensor.Align - 1) / tensor.Align * tensor.Align }
