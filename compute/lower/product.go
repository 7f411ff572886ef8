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
	Runs       []BatchRun
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
	p.Runs = batchRuns(lhs.Axes(axes.LHSBatch), rhs.Axes(axes.RHSBatch), p.M*p.N)
	return p
}

// batchRuns lists the products of a batch, in runs along the last batch dimension, or along all of them if they merge.
func batchRuns(lhs, rhs view.View, cStep int) []BatchRun {
	l, r := lhs.Merged(), rhs.Merged()
	n := view.Elements(lhs.Dims)
	if len(l.Dims) <= 1 && len(r.Dims) <= 1 {
		run := BatchRun{A: lhs.Offset, B: rhs.Offset, Count: n}
		if n > 1 {
			run.AStep, run.BStep = l.Strides[0], r.Strides[0]
		}
		return []BatchRun{run}
	}
	last := len(lhs.Dims) - 1
	inner := lhs.Dims[last]
	runs := make([]BatchRun, n/inner)
	for i := range runs {
		run := BatchRun{A: lhs.Offset, B: rhs.Offset, C: i * inner * cStep, Count: inner, AStep: lhs.Strides[last],
			BStep: rhs.Strides[last]}
		for d, rest := last-1, i; d >= 0; d-- {
			k := rest % lhs.Dims[d]
			rest /= lhs.Dims[d]
			run.A += k * lhs.Strides[d]
			run.B += k * rhs.Strides[d]
		}
		runs[i] = run
	}
	return runs
}
