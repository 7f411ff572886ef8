package lower

import (
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/view"
)

// Product is the matrix products that a step of kind Dot or DotExact is: C = A x B with A [M, K], B [K, N] and C [M,
// N], of which C lies row by row. Element (i, k) of A is at i*ARow+k*ACol, and element (k, j) of B at k*BRow+j*BCol.
type Product struct {
	M, N, K    int
	ARow, ACol int
	BRow, BCol int
	Batch      Batch
}

// BatchRun is Count products at equal steps: the first reads and writes from the elements A, B and C on, of the stores
// of its operands and of its result, and product i from i*AStep, i*BStep and i*M*N more.
type BatchRun struct{ A, B, C, Count, AStep, BStep int }

// Product returns the products of a step of kind Dot or DotExact.
func (st *Step) Product() Product {
	lhs, rhs := st.In[0], st.In[1]
	axes, _ := program.AxesOfDot(st.Ints, len(lhs.Dims), len(rhs.Dims))
	var p Product
	p.M, p.ARow, _ = lhs.Line(axes.LHSFree)
	p.K, p.ACol, _ = lhs.Line(axes.LHSContract)
	_, p.BRow, _ = rhs.Line(axes.RHSContract)
	p.N, p.BCol, _ = rhs.Line(axes.RHSFree)
	p.Batch = batchOf(lhs.Axes(axes.LHSBatch), rhs.Axes(axes.RHSBatch), p.M*p.N)
	return p
}

// Batch is the products of a batch in runs along its last dimension, or in one run if all dimensions merge. The runs
// are computed when they are asked for: a program of a stranger may have more of them than memory holds.
type Batch struct {
	lhs, rhs view.View // of the batch dimensions alone
	count    int       // products of a run
	runs     int
	step     int // elements of a product's result
}

func batchOf(lhs, rhs view.View, step int) Batch {
	n := view.Elements(lhs.Dims)
	if l, r := lhs.Merged(), rhs.Merged(); len(l.Dims) <= 1 && len(r.Dims) <= 1 {
		return Batch{l, r, n, 1, step}
	}
	count := lhs.Dims[len(lhs.Dims)-1]
	return Batch{lhs, rhs, count, n / count, step}
}

// Runs is the number of runs.
func (b Batch) Runs() int { return b.runs }

// Run returns run i.
func (b Batch) Run(i int) BatchRun {
	run := BatchRun{A: b.lhs.Offset, B: b.rhs.Offset, C: i * b.count * b.step, Count: b.count}
	last := len(b.lhs.Dims) - 1
	if b.count > 1 {
		run.AStep, run.BStep = b.lhs.Strides[last], b.rhs.Strides[last]
	}
	for d, rest := last-1, i; d >= 0; d-- {
		k := rest % b.lhs.Dims[d]
		rest /= b.lhs.Dims[d]
		run.A += k * b.lhs.Strides[d]
		run.B += k * b.rhs.Strides[d]
	}
	return run
}
