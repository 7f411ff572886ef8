package cpu

import (
	"slices"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/tensor"
)

// How groups are cut. Results do not depend on it; the tests set small values.
var (
	tileElements = 1024    // elements of a tile: a few tiles of float32 fit the first-level cache
	minParallel  = 1 << 15 // elements times operators below which a step runs on one thread
)

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
	load *lower.Location
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

// tilerOf assigns registers.
func tilerOf(g *lower.Group, stores []lower.Store, m elementary.Math) *tiler {
	t := &tiler{n: g.N, tile: tileSize(g), work: g.N * len(g.Code)}
	last := make([]int, len(g.Values)) // the last operator that reads a value
	for i, op := range g.Code {
		for _, v := range op.In {
			last[v] = i
		}
	}
	free := map[int][]int{} // offsets of dead scratch registers, by size of the element
	alloc := func(size int) int {
		if list := free[size]; len(list) > 0 {
			free[size] = list[:len(list)-1]
			return list[len(list)-1]
		}
		t.scratch += tensor.AlignUp(t.tile * size)
		return t.scratch - tensor.AlignUp(t.tile*size)
	}
	ready := make([]bool, len(g.Values))
	t.registers = make([]register, len(g.Values))
	for i := range g.Code {
		op := &g.Code[i]
		for _, v := range op.In {
			if val := &g.Values[v]; val.From != nil && !ready[v] {
				ready[v] = true
				t.addLoad(v, val, alloc)
			}
		}
		out := &g.Values[op.Out]
		r := register{direct: stores[out.Store].Used, store: out.Store, size: out.Type.Size()}
		dead := t.dying(op.In, last, i)
		// A lane may write over an operand of the same size: take back its register first.
		for _, v := range dead {
			free[t.registers[v].size] = append(free[t.registers[v].size], t.registers[v].offset)
		}
		if !r.direct {
			r.offset = alloc(r.size)
		}
		t.registers[op.Out] = r
		run := laneOf(op, g.Values[op.In[0]].Type, out.Type, m)
		t.code = append(t.code, instruction{run: run, in: op.In, out: op.Out})
	}
	return t
}

// addLoad makes value v, which is read from a store, available.
func (t *tiler) addLoad(v int, val *lower.GroupValue, alloc func(size int) int) {
	size := val.Type.Size()
	r := register{direct: true, whole: val.Whole, store: val.From.Store, offset: val.From.Offset * size, size: size}
	if val.Whole || val.From.Contiguous() {
		t.registers[v] = r
		return
	}
	load := instruction{load: val.From, out: v}
	if p := val.From.Period(); p > 0 && t.tile%p == 0 {
		t.once = append(t.once, load)
		t.scratch += tensor.AlignUp(t.tile * size)
		r.offset = t.scratch - tensor.AlignUp(t.tile*size)
		r.fixed = true
	} else {
		t.code = append(t.code, load)
		r.offset = alloc(size)
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
func tileSize(g *lower.Group) int {
	longest := 1
	for _, v := range g.Values {
		if v.From != nil && !v.Whole && !v.From.Contiguous() {
			if p := v.From.Period(); p <= tileElements {
				longest = max(longest, p)
			}
		}
	}
	return min(tileElements/longest*longest, g.N)
}

// run computes the group on the memory of x.
func (t *tiler) run(x *Exec) error {
	tiles := (t.n + t.tile - 1) / t.tile
	workers := min(len(x.workers), tiles)
	if t.work < minParallel {
		workers = 1
	}
	if workers == 1 {
		t.runTiles(x, &x.workers[0], 0, tiles)
		return nil
	}
	kernel.Parallel(workers, workers, func(lo, hi int) {
		for w := lo; w < hi; w++ {
			t.runTiles(x, &x.workers[w], w*tiles/workers, (w+1)*tiles/workers)
		}
	})
	return nil
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
	dst, src := w.registers[in.out], x.memory[in.load.Store]
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
