package lower

import (
	"slices"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// lowering is a plan while it is made.
type lowering struct {
	*Plan
	at   []Location  // by value: where its elements are
	open map[int]int // by number of elements: the step of the last group
	live []bool      // by operator: whether an output needs it
	late bool        // the operator makes a weight of few bits
}

// Program plans a program, which must have passed Check.
func Program(p *program.Program) *Plan {
	l := &lowering{Plan: &Plan{Program: p}, at: make([]Location, len(p.Ops)), open: map[int]int{}, live: p.Live()}
	weight, _ := weights(p)
	for i := range p.Ops {
		if l.late = weight[i]; l.live[i] {
			l.at[i] = l.lower(i)
		}
	}
	l.late = false
	for i, o := range p.Outputs {
		l.output(i, int(o.Value))
	}
	l.layout()
	return l.Plan
}

// lower adds what operator i needs, and returns where its value is.
func (l *lowering) lower(i int) Location {
	op := &l.Program.Ops[i]
	switch {
	case op.Kind == program.Input:
		return dense(l.newStore(Store{Class: InInput, Index: i, Bytes: op.Out.Bytes(), Made: -1}), op.Out)
	case op.Kind == program.Constant:
		return dense(l.newStore(Store{Class: InProgram, Index: i, Bytes: op.Out.Bytes(), Made: -1}), op.Out)
	case op.Kind == program.Identity:
		return l.at[op.In[0]]
	case op.Kind == program.Reshape:
		x := l.at[op.In[0]]
		v, ok := x.Reshape(op.Out.Dims)
		if !ok {
			x = l.dense(op.In[0])
			v, _ = x.Reshape(op.Out.Dims)
		}
		return x.through(v)
	case op.Kind.Moves():
		x := l.at[op.In[0]]
		return x.through(op.Moved(x.View))
	case op.Kind.Elementwise():
		operands := make([]operand, len(op.In))
		for k, v := range op.In {
			operands[k] = operand{l.at[v], op.Kind.TakesWhole(k)}
		}
		return l.addGrouped(GroupOp{Kind: op.Kind, Ints: op.Ints}, operands, op.Out)
	}
	return l.lowerStep(i)
}

func (l *lowering) newStore(s Store) int {
	s.Last = -1
	l.Stores = append(l.Stores, s)
	return len(l.Stores) - 1
}

// dense returns a contiguous location of a value, after adding a copy if there is none. Later operators read the copy
// too.
func (l *lowering) dense(v int32) Location {
	if !l.at[v].Contiguous() {
		l.at[v] = l.copied(l.at[v])
	}
	return l.at[v]
}

// output makes value v the output i: in place if its store is free for that, else by a copy.
func (l *lowering) output(i, v int) {
	at := l.at[v]
	if s := &l.Stores[at.Store]; s.Class != InArena || s.Bytes != l.Program.Ops[v].Out.Bytes() || !at.Contiguous() ||
		at.Offset != 0 {
		at = l.copied(at)
	}
	l.Stores[at.Store].Class, l.Stores[at.Store].Index = InOutput, i
}

// addStep adds a step of operator i on contiguous operands, and returns the location of its result.
func (l *lowering) addStep(i int, ints []int64, in []Location, out tensor.Shape) Location {
	at := dense(l.newStore(Store{Bytes: out.Bytes(), Made: len(l.Steps)}), out)
	st := Step{Kind: l.Program.Ops[i].Kind, Op: i, Ints: ints, In: in, Out: at, writes: []int{at.Store}}
	for _, x := range in {
		st.reads = append(st.reads, x.Store)
	}
	l.Steps = append(l.Steps, st)
	return at
}

// mayWriteOver lets the last step write its result over its first operand, of the same size, if nothing reads that any
// more.
func (l *lowering) mayWriteOver(in []Location) {
	lo, hi := in[0].Range()
	others := slices.ContainsFunc(in[1:], func(x Location) bool { return x.Store == in[0].Store })
	if lo == 0 && hi == l.Stores[in[0].Store].Bytes && !others {
		l.Steps[len(l.Steps)-1].over = []int{in[0].Store}
	}
}

// layout settles when stores live, which have memory, and where they are in the arena.
func (l *lowering) layout() {
	for i := range l.Steps {
		st := &l.Steps[i]
		if st.Group != nil {
			for _, v := range st.Group.Values {
				if v.From != nil {
					st.reads = append(st.reads, v.Store)
				}
			}
		}
		slices.Sort(st.reads)
		st.reads = slices.Compact(st.reads)
		for _, s := range st.reads {
			l.Stores[s].Last = i
		}
	}
	for i := range l.Stores {
		s := &l.Stores[i]
		s.Used = s.Class != InArena || s.Last >= 0 || l.Steps[s.Made].Group == nil
	}
	for i := range l.Steps {
		st := &l.Steps[i]
		if st.Group == nil {
			continue
		}
		for _, v := range st.Group.Values {
			if v.From == nil && l.Stores[v.Store].Used {
				st.writes = append(st.writes, v.Store)
			}
		}
	}
	l.assign()
}
