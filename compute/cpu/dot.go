package cpu

import (
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// bindDot makes the products of a step, which read their operands where they are.
func bindDot(st *lower.Step, path kernel.Path) boundStep {
	lhs, rhs, out := st.In[0], st.In[1], st.Out.Store
	axes, _ := program.AxesOfDot(st.Ints, len(lhs.Dims), len(rhs.Dims))
	g := matmul.Gemm{Path: path}
	g.M, g.ARow, _ = lhs.Line(axes.LHSFree)
	g.K, g.ACol, _ = lhs.Line(axes.LHSContract)
	_, g.BRow, _ = rhs.Line(axes.RHSContract)
	g.N, g.BCol, _ = rhs.Line(axes.RHSFree)
	g.CRow = g.N
	batches := batchesOf(lhs.Axes(axes.LHSBatch), rhs.Axes(axes.RHSBatch), g.M*g.N)
	return boundStep{run: func(x *Exec) error {
		a := tensor.As[float32](x.memory[lhs.Store])[lhs.Offset:]
		b := tensor.As[float32](x.memory[rhs.Store])[rhs.Offset:]
		c := tensor.As[float32](x.memory[out])
		for _, r := range batches {
			g := g
			g.A, g.B, g.C = a[r.a:], b[r.b:], c[r.c:]
			matmul.BatchGemm(g, r.n, r.aStep, r.bStep, g.M*g.N, len(x.workers))
		}
		return nil
	}}
}

// A batchRun is n products at equal steps, from the elements a, b and c on.
type batchRun struct{ a, b, c, n, aStep, bStep int }

// batchesOf lists the products of a batch, in runs along the last batch dimension, or along all of them if they merge.
func batchesOf(lhs, rhs view.View, cStep int) []batchRun {
	l, r := lhs.Merged(), rhs.Merged()
	n := view.Elements(lhs.Dims)
	if len(l.Dims) <= 1 && len(r.Dims) <= 1 {
		run := batchRun{n: n}
		if n > 1 {
			run.aStep, run.bStep = l.Strides[0], r.Strides[0]
		}
		return []batchRun{run}
	}
	last := len(lhs.Dims) - 1
	inner := lhs.Dims[last]
	runs := make([]batchRun, n/inner)
	for i := range runs {
		run := batchRun{c: i * inner * cStep, n: inner, aStep: lhs.Strides[last], bStep: rhs.Strides[last]}
		for d, rest := last-1, i; d >= 0; d-- {
			k := rest % lhs.Dims[d]
			rest /= lhs.Dims[d]
			run.a += k * lhs.Strides[d]
			run.b += k * rhs.Strides[d]
		}
		runs[i] = run
	}
	return runs
}
