package program

import (
	"slices"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// Where the memory of a store comes from.
type class uint8

const (
	inArena   class = iota // of the plan, shared with stores that are not alive at the same time
	inInput                // of the caller's input
	inOutput               // of the caller's output
	inProgram              // a constant
)

// A store is memory that holds the elements of one value, and of its views.
type store struct {
	bytes  int
	class  class
	index  int // inInput, inProgram: the operator; inOutput: the output
	made   int // the step that writes it, -1 before all steps
	last   int // the last step that reads it, -1 if none does
	offset int // in the arena
}

// A step is what a run does at once: a group, or the function run.
type step struct {
	group  *group
	run    func(x *Exec) error
	reads  []int // stores
	writes []int // stores
	over   []int // stores that run may write its result over
}

// A plan is a program turned into steps on stores: movement folded into views, elementwise operators into groups.
type plan struct {
	p       *Program
	path    kernel.Path // 0 is the active path at the time of a run
	at      []loc       // by value: where its elements are
	stores  []store
	steps   []step
	open    map[int]int // by number of elements: the step of the last group
	arena   int         // bytes
	scratch int         // bytes of a worker
	widest  int         // registers of the largest group
	live    []bool      // by operator: whether an output needs it
}

// lower plans a verified program. The plan of a program is the same in every process.
func lower(p *Program, path kernel.Path) *plan {
	pl := &plan{p: p, path: path, at: make([]loc, len(p.Ops)), open: map[int]int{}, live: p.live()}
	for i := range p.Ops {
		if pl.live[i] {
			pl.lowerOp(i)
		}
	}
	for i, o := range p.Outputs {
		pl.lowerOutput(i, int(o.Value))
	}
	pl.layout()
	return pl
}

// live marks the operators that an output needs.
func (p *Program) live() []bool {
	live := make([]bool, len(p.Ops))
	for _, o := range p.Outputs {
		live[o.Value] = true
	}
	for i := len(p.Ops) - 1; i >= 0; i-- {
		if live[i] {
			for _, v := range p.Ops[i].In {
				live[v] = true
			}
		}
	}
	return live
}

func (pl *plan) lowerOp(i int) {
	op := &pl.p.Ops[i]
	dims := op.Out.Dims
	var x loc
	if len(op.In) > 0 {
		x = pl.at[op.In[0]]
	}
	switch op.Kind {
	case Input:
		pl.at[i] = dense(pl.newStore(store{class: inInput, index: i, bytes: op.Out.Bytes(), made: -1}), dims)
	case Constant:
		pl.at[i] = dense(pl.newStore(store{class: inProgram, index: i, bytes: op.Out.Bytes(), made: -1}), dims)
	case Identity:
		pl.at[i] = x
	case Reshape:
		v, ok := x.Reshape(dims)
		if !ok {
			x = pl.dense(int(op.In[0]))
			v, _ = x.Reshape(dims)
		}
		pl.at[i] = x.through(v)
	case Transpose, Broadcast, Slice, Reverse, Windows:
		pl.at[i] = x.through(moved(op, x.View))
	default:
		if l := laneOf(op, pl.typeOf(op), pl.path); l != nil {
			pl.at[i] = pl.lowerLane(op, l)
			return
		}
		pl.at[i] = pl.lowerStep(i)
	}
}

// typeOf is the element type that the lane of an operator reads.
func (pl *plan) typeOf(op *Operator) tensor.DType {
	if len(op.In) == 0 {
		return op.Out.DType
	}
	return pl.p.Ops[op.In[0]].Out.DType
}

func (pl *plan) newStore(s store) int {
	s.last = -1
	pl.stores = append(pl.stores, s)
	return len(pl.stores) - 1
}

// lowerLane adds an elementwise operator to a group.
func (pl *plan) lowerLane(op *Operator, run lane) loc {
	operands := make([]operand, len(op.In))
	for i, v := range op.In {
		operands[i] = operand{loc: pl.at[v], size: pl.p.Ops[v].Out.DType.Size(), whole: scalarOperand(op.Kind, i)}
	}
	return pl.addLane(run, operands, op.Out)
}

// scalarOperand reports whether a lane takes all of operand i at once.
func scalarOperand(k Kind, i int) bool {
	switch k {
	case AdamM, AdamV:
		return i >= 2
	case AdamP:
		return i >= 3
	}
	return false
}

// An operand of a lane.
type operand struct {
	loc
	size  int // bytes of an element
	whole bool
}

// addLane adds a lane with a result of shape out to the group that can host it, or to a new one.
func (pl *plan) addLane(run lane, operands []operand, out tensor.Shape) loc {
	n := out.Elements()
	at := pl.host(n, operands)
	g := pl.steps[at].group
	in := make([]int, len(operands))
	for i, o := range operands {
		if pl.stores[o.store].made == at {
			in[i] = g.made(o.store)
		} else {
			in[i] = g.read(o.loc, o.whole, o.size)
		}
	}
	s := pl.newStore(store{bytes: out.Bytes(), made: at})
	g.values = append(g.values, groupValue{size: out.DType.Size(), store: s})
	g.code = append(g.code, groupOp{run: run, in: in, out: len(g.values) - 1})
	return dense(s, out.Dims)
}

// host returns the step of a group of n elements that comes after all operands are made, or makes some of them itself,
// element by element.
func (pl *plan) host(n int, operands []operand) int {
	after, elementwise := -1, true
	for _, o := range operands {
		made := pl.stores[o.store].made
		if made > after {
			after, elementwise = made, true
		}
		if made == after && (o.whole || o.Offset != 0 || view.Elements(o.Dims) != n || !o.Contiguous()) {
			elementwise = false
		}
	}
	if at, ok := pl.open[n]; ok && len(pl.steps[at].group.code) < maxGroup && (at > after || at == after && elementwise) {
		return at
	}
	pl.steps = append(pl.steps, step{group: &group{n: n}})
	pl.open[n] = len(pl.steps) - 1
	return len(pl.steps) - 1
}

// dense returns a contiguous loc of a value, after adding a copy if there is none. Later operators read the copy too.
func (pl *plan) dense(v int) loc {
	if !pl.at[v].Contiguous() {
		s := pl.p.Ops[v].Out
		pl.at[v] = pl.addLane(copyLane, []operand{{loc: pl.at[v], size: s.DType.Size()}}, s)
	}
	return pl.at[v]
}

// addStep adds a step that is not a group, and returns the loc of its result. run gets the memory of the operands,
// which must be contiguous, and of the result.
func (pl *plan) addStep(in []span, out tensor.Shape, run func(x *Exec, dst []byte, in [][]byte) error) loc {
	s := pl.newStore(store{bytes: out.Bytes(), made: len(pl.steps)})
	st := step{writes: []int{s}}
	for _, sp := range in {
		st.reads = append(st.reads, sp.store)
	}
	memory := make([][]byte, len(in))
	st.run = func(x *Exec) error {
		for i, sp := range in {
			memory[i] = x.memory[sp.store][sp.lo:sp.hi]
		}
		err := run(x, x.memory[s], memory)
		clear(memory)
		return err
	}
	pl.steps = append(pl.steps, st)
	return dense(s, out.Dims)
}

// mayWriteOver lets the last step write its result over its first operand, of the same size, if nobody reads that any
// more.
func (pl *plan) mayWriteOver(in []span) {
	first := in[0]
	others := slices.ContainsFunc(in[1:], func(s span) bool { return s.store == first.store })
	if first.lo == 0 && first.hi == pl.stores[first.store].bytes && !others {
		pl.steps[len(pl.steps)-1].over = []int{first.store}
	}
}

// A span is contiguous memory of a store: bytes lo to hi.
type span struct{ store, lo, hi int }

// spanOf returns the memory of a value, after adding a copy if it is not contiguous.
func (pl *plan) spanOf(v int32) span {
	l := pl.dense(int(v))
	s := pl.p.Ops[v].Out
	lo := l.Offset * s.DType.Size()
	return span{l.store, lo, lo + s.Bytes()}
}

// lowerOutput makes value v the output i: in place if its store is free for that, else by a copy.
func (pl *plan) lowerOutput(i, v int) {
	l, s := pl.at[v], pl.p.Ops[v].Out
	st := &pl.stores[l.store]
	if st.class != inArena || st.bytes != s.Bytes() || !l.Contiguous() || l.Offset != 0 {
		l = pl.addLane(copyLane, []operand{{loc: l, size: s.DType.Size()}}, s)
	}
	pl.stores[l.store].class, pl.stores[l.store].index = inOutput, i
}

// layout settles when stores live, where they are in the arena, and how groups run.
func (pl *plan) layout() {
	for i := range pl.steps {
		if g := pl.steps[i].group; g != nil {
			for _, v := range g.values {
				if v.from != nil {
					pl.steps[i].reads = append(pl.steps[i].reads, v.store)
				}
			}
		}
		slices.Sort(pl.steps[i].reads)
		pl.steps[i].reads = slices.Compact(pl.steps[i].reads)
		for _, s := range pl.steps[i].reads {
			pl.stores[s].last = i
		}
	}
	kept := func(s int) bool { return pl.stores[s].last >= 0 || pl.stores[s].class == inOutput }
	for i := range pl.steps {
		st := &pl.steps[i]
		if st.group == nil {
			continue
		}
		for _, v := range st.group.values {
			if v.from == nil && kept(v.store) {
				st.writes = append(st.writes, v.store)
			}
		}
		t := st.group.compile(kept)
		pl.scratch = max(pl.scratch, t.scratch)
		pl.widest = max(pl.widest, len(t.registers))
		st.run = func(x *Exec) error { t.run(x); return nil }
	}
	pl.assign()
}
