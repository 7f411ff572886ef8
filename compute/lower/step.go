package lower

import (
	"slices"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// lowerStep adds an operator that is neither movement nor elementwise.
func (l *lowering) lowerStep(i int) Location {
	op := &l.Program.Ops[i]
	switch k := op.Kind; {
	case k.Multiplies():
		return l.lowerDot(i)
	case k == program.ReduceSum || k == program.ReduceMax || k == program.ReduceMin:
		return l.lowerReduce(i)
	case k == program.FirstMax:
		return l.lowerFirstMax(i)
	case k.Attention():
		return l.lowerAttention(i)
	}
	in := make([]Location, len(op.In))
	for k, v := range op.In {
		in[k] = l.dense(v)
	}
	at := l.addStep(i, op.Ints, in, op.Out)
	if op.Kind == program.AddRows || op.Kind == program.CrossEntropyGrad {
		l.mayWriteOver(in)
	}
	return at
}

// lowerReduce reduces rows or columns in place; if the axes are neither, it copies to kept dimensions, then reduced.
func (l *lowering) lowerReduce(i int) Location {
	op := &l.Program.Ops[i]
	in, axes := l.dense(op.In[0]), op.Ints
	if _, _, _, ok := view.Middle(l.Program.Ops[op.In[0]].Out.Dims, axes); !ok {
		in, axes = l.reducedLast(in, axes)
		in = l.copied(in)
	}
	return l.addStep(i, axes, []Location{in}, op.Out)
}

// reducedLast moves some axes to the end, and returns where they are then.
func (l *lowering) reducedLast(x Location, axes []int64) (Location, []int64) {
	kept := view.Others(len(x.Dims), axes)
	last := make([]int64, len(axes))
	for i := range last {
		last[i] = int64(len(kept) + i)
	}
	return x.through(x.Axes(append(kept, axes...))), last
}

// lowerFirstMax marks lists of neighbours: the reduced axes are moved to the end and back.
func (l *lowering) lowerFirstMax(i int) Location {
	op := &l.Program.Ops[i]
	in, axes := l.reducedLast(l.at[op.In[0]], op.Ints)
	if !in.Contiguous() {
		in = l.copied(in)
	}
	marks := l.addStep(i, axes, []Location{in}, tensor.Make(tensor.Bool, in.Dims...))
	perm := append(view.Others(len(in.Dims), op.Ints), op.Ints...)
	return marks.through(marks.Axes(view.Inverse(perm)))
}

// lowerDot adds a product that reads its operands where they are.
func (l *lowering) lowerDot(i int) Location {
	op := &l.Program.Ops[i]
	axes, _ := program.AxesOfDot(op.Ints, len(l.at[op.In[0]].Dims), len(l.at[op.In[1]].Dims))
	lhs := l.side(op.In[0], axes.LHSFree, axes.LHSContract, axes.LHSBatch)
	rhs := l.side(op.In[1], axes.RHSFree, axes.RHSContract, axes.RHSBatch)
	return l.addStep(i, op.Ints, []Location{lhs, rhs}, op.Out)
}

// side returns a location of an operand of a product with lines for free and contracted axes.
func (l *lowering) side(v int32, free, contract, batch []int64) Location {
	for {
		x := l.at[v]
		_, _, ok1 := x.Line(free)
		_, _, ok2 := x.Line(contract)
		if ok1 && ok2 && x.Axes(batch).Ascending() {
			return x
		}
		// No strides express it: copy to [batch, free, contract] and take that.
		perm := slices.Concat(batch, free, contract)
		c := l.copied(x.through(x.Axes(perm)))
		l.at[v] = c.through(c.Axes(view.Inverse(perm)))
	}
}
