package cpu

import (
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// bindDot makes the products of a step, which read their operands where they are.
func bindDot(st *lower.Step, path kernel.Path) boundStep {
	lhs, rhs, out := st.In[0].Store, st.In[1].Store, st.Out.Store
	p := st.Product()
	g := matmul.Gemm{Path: path, M: p.M, N: p.N, K: p.K, ARow: p.ARow, ACol: p.ACol, BRow: p.BRow, BCol: p.BCol, CRow: p.N}
	multiply := matmul.BatchGemm
	if st.Kind == program.DotExact {
		multiply = exact.Batch(program.FormOfDot(st.Ints))
	}
	return boundStep{run: func(x *Exec) error {
		a, b := tensor.As[float32](x.memory[lhs]), tensor.As[float32](x.memory[rhs])
		c := tensor.As[float32](x.memory[out])
		for i := range p.Batch.Runs() {
			r := p.Batch.Run(i)
			g := g
			g.A, g.B, g.C = a[r.A:], b[r.B:], c[r.C:]
			multiply(g, r.Count, r.AStep, r.BStep, p.M*p.N, len(x.workers))
		}
		return nil
	}}
}
