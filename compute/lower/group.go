package lower

import (
	"slices"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

const maxGroup = 64 // operators of a group

// Group is a step of elementwise operators on values of N elements each: values that no other step reads need no memory
// beyond the group. Every element is computed exactly as by the operators one after the other.
type Group struct {
	N      int
	Values []GroupValue
	Code   []GroupOp // in an order of dependence
}

// GroupValue is read from a store or made by an operator of the group.
type GroupValue struct {
	From  *Location // where it is read from; nil if it is made here
	Whole bool      // operators take all of From at once: scalars of Adam
	Type  tensor.DType
	Store int // where it is, or is put if others read it
}

// GroupOp is an elementwise operator. Identity copies.
type GroupOp struct {
	Kind program.Kind
	Ints []int64
	In   []int // values
	Out  int   // value
}

// An operand of an elementwise operator.
type operand struct {
	Location
	whole bool
}

// read returns the value of the group that reads from an operand.
func (g *Group) read(o operand) int {
	l := o.Location
	if !o.whole {
		l = l.through(l.Merged())
	}
	for i, v := range g.Values {
		if v.From != nil && v.Whole == o.whole && v.From.Store == l.Store && v.From.Offset == l.Offset &&
			slices.Equal(v.From.Dims, l.Dims) && slices.Equal(v.From.Strides, l.Strides) {
			return i
		}
	}
	g.Values = append(g.Values, GroupValue{From: &l, Whole: o.whole, Type: l.Type, Store: l.Store})
	return len(g.Values) - 1
}

// made returns the value that an operator of the group puts into the store, or -1.
func (g *Group) made(store int) int {
	return slices.IndexFunc(g.Values, func(v GroupValue) bool { return v.From == nil && v.Store == store })
}

// uses says when the group last reads each store that it reads, as the position of an operator. A store that is not
// read whole, in order and element by element, is read until the end.
func (g *Group) uses(stores []Store) map[int]int {
	last := map[int]int{}
	for i, op := range g.Code {
		for _, v := range op.In {
			if val := &g.Values[v]; val.From != nil {
				last[val.Store] = max(last[val.Store], g.until(stores, val, i))
			}
		}
	}
	return last
}

// use is the entry of uses for one store.
func (g *Group) use(stores []Store, store int) (last int) {
	for i, op := range g.Code {
		for _, v := range op.In {
			if val := &g.Values[v]; val.From != nil && val.Store == store {
				last = max(last, g.until(stores, val, i))
			}
		}
	}
	return last
}

// until says until when a value that operator i reads is needed.
func (g *Group) until(stores []Store, val *GroupValue, i int) int {
	if val.Whole || val.From.Offset != 0 || !val.From.Contiguous() || stores[val.Store].Bytes != g.N*val.Type.Size() {
		return len(g.Code)
	}
	return i
}

// makes says which operator makes each store.
func (g *Group) makes() map[int]int {
	at := map[int]int{}
	for i, op := range g.Code {
		at[g.Values[op.Out].Store] = i
	}
	return at
}

// maker is the entry of makes for one store.
func (g *Group) maker(store int) (at int) {
	for i, op := range g.Code {
		if g.Values[op.Out].Store == store {
			at = i
		}
	}
	return at
}

// addGrouped adds an elementwise operator with a result of shape out to the group that can host it, or to a new one.
func (l *lowering) addGrouped(op GroupOp, operands []operand, out tensor.Shape) Location {
	n := out.Elements()
	at := l.host(n, operands)
	g := l.Steps[at].Group
	op.In = make([]int, len(operands))
	for i, o := range operands {
		if l.Stores[o.Store].Made == at {
			op.In[i] = g.made(o.Store)
		} else {
			op.In[i] = g.read(o)
		}
	}
	s := l.newStore(Store{Bytes: out.Bytes(), Made: at})
	op.Out = len(g.Values)
	g.Values = append(g.Values, GroupValue{Type: out.DType, Store: s})
	g.Code = append(g.Code, op)
	return dense(s, out)
}

// copied adds a copy of the elements at a location, and returns the location of the copy.
func (l *lowering) copied(from Location) Location {
	return l.addGrouped(GroupOp{Kind: program.Identity}, []operand{{Location: from}}, tensor.Make(from.Type, from.Dims...))
}

// host returns the step of a group of n elements that comes after all operands are made, or makes some of them itself,
// element by element.
func (l *lowering) host(n int, operands []operand) int {
	after, elementwise := -1, true
	for _, o := range operands {
		made := l.Stores[o.Store].Made
		if made > after {
			after, elementwise = made, true
		}
		if made == after && (o.whole || o.Offset != 0 || view.Elements(o.Dims) != n || !o.Contiguous()) {
			elementwise = false
		}
	}
	at, ok := l.open[n]
	if l.late { // what is made of inputs alone could be made at once, and is made where it is read
		ok = ok && at == len(l.Steps)-1
	}
	if ok && len(l.Steps[at].Group.Code) < maxGroup && (at > after || at == after && elementwise) {
		return at
	}
	l.Steps = append(l.Steps, Step{Group: &Group{N: n}})
	l.open[n] = len(l.Steps) - 1
	return len(l.Steps) - 1
}
