package program

import (
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// An axis is what several dimensions of a view are if one stride walks them all in row-major order.
type axis struct{ n, stride int }

// A side is one operand of a product, read in place.
type side struct {
	loc
	free, contract axis
	batch          view.View // the batch dimensions
}

func (pl *plan) side(v int32, free, contract, batch []int64) side {
	for {
		l := pl.at[v]
		s := side{loc: l, batch: l.Axes(batch)}
		var ok1, ok2 bool
		s.free.n, s.free.stride, ok1 = l.Line(free)
		s.contract.n, s.contract.stride, ok2 = l.Line(contract)
		if ok1 && ok2 && s.batch.Ascending() {
			return s
		}
		// No strides express it: copy to [batch, free, contract] and take that.
		perm := append(append(append([]int64{}, batch...), free...), contract...)
		t := l.through(l.Axes(perm))
		c := pl.addLane(copyLane, []operand{{loc: t, size: 4}}, tensor.Make(tensor.Float32, t.Dims...))
		pl.at[v] = c.through(c.Axes(view.Inverse(perm)))
	}
}

// lowerDot adds a product that reads its operands where they are.
func (pl *plan) lowerDot(op *Operator) loc {
	axes, _ := parseDot(op, pl.p.Ops[op.In[0]].Out.Rank(), pl.p.Ops[op.In[1]].Out.Rank())
	lhs := pl.side(op.In[0], axes.lhsFree, axes.lhsContract, axes.lhsBatch)
	rhs := pl.side(op.In[1], axes.rhsFree, axes.rhsContract, axes.rhsBatch)
	s := pl.newStore(store{bytes: op.Out.Bytes(), made: len(pl.steps)})
	g := matmul.Gemm{
		M: lhs.free.n, N: rhs.free.n, K: lhs.contract.n,
		ARow: lhs.free.stride, ACol: lhs.contract.stride,
		BRow: rhs.contract.stride, BCol: rhs.free.stride,
		CRow: rhs.free.n, Path: pl.path,
	}
	batches := batchesOf(lhs.batch, rhs.batch, g.M*g.N)
	run := func(x *Exec) error {
		a := tensor.As[float32](x.memory[lhs.store])[lhs.Offset:]
		b := tensor.As[float32](x.memory[rhs.store])[rhs.Offset:]
		c := tensor.As[float32](x.memory[s])
		for _, r := range batches {
			g := g
			g.A, g.B, g.C = a[r.a:], b[r.b:], c[r.c:]
			matmul.BatchGemm(g, r.n, r.aStep, r.bStep, g.M*g.N, len(x.workers))
		}
		return nil
	}
	pl.steps = append(pl.steps, step{run: run, reads: []int{lhs.store, rhs.store}, writes: []int{s}})
	return dense(s, op.Out.Dims)
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
