// Package machine measures what this machine computes: matrix products, training steps, generation, audits, the losses
// of a training run, and what it can offer as a worker. It compares with nothing.
package machine

import (
	"context"
	"math"
	"time"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/node/benchmark"
)

// Product is a batch of matrix products of one shape: [M, K] x [K, N].
type Product struct {
	Name           string
	Batch, M, K, N int
	TransA, TransB bool // the operand lies in memory as its transpose
}

// Products are squares, the projections of a GPT of width 384 on 2048 tokens, and the two products of its attention.
var Products = []Product{
	{Name: "sq512", Batch: 1, M: 512, K: 512, N: 512},
	{Name: "sq1024", Batch: 1, M: 1024, K: 1024, N: 1024},
	{Name: "sq2048", Batch: 1, M: 2048, K: 2048, N: 2048},
	{Name: "fc", Batch: 1, M: 2048, K: 384, N: 1536},
	{Name: "proj", Batch: 1, M: 2048, K: 1536, N: 384},
	{Name: "qkv", Batch: 1, M: 2048, K: 384, N: 1152},
	{Name: "att_qk", Batch: 48, M: 256, K: 64, N: 256},
	{Name: "att_av", Batch: 48, M: 256, K: 256, N: 64},
}

// Transposed are the products of the backward pass for the inputs (dx) and the weights (dw) of some of Products, and
// the first product of attention as the forward pass has it, with the keys in rows.
var Transposed = []Product{
	{Name: "fc_dx", Batch: 1, M: 2048, K: 1536, N: 384, TransB: true},
	{Name: "fc_dw", Batch: 1, M: 384, K: 2048, N: 1536, TransA: true},
	{Name: "proj_dx", Batch: 1, M: 2048, K: 384, N: 1536, TransB: true},
	{Name: "proj_dw", Batch: 1, M: 1536, K: 2048, N: 384, TransA: true},
	{Name: "att_qkt", Batch: 48, M: 256, K: 64, N: 256, TransB: true},
	{Name: "att_dv", Batch: 48, M: 256, K: 256, N: 64, TransA: true},
}

// MatmulReport is the speed of matrix products.
type MatmulReport struct {
	GFLOPS  map[string]float64 `json:"gflops"`     // by name of the product; 1e9 operations a second
	CPU     map[string]float64 `json:"gflops_cpu"` // the same of a second of processor time, of all threads together
	Threads int                `json:"threads"`
	Kernels string             `json:"kernels"`
}

// Matmul measures the products one after the other. The speed of one is that of its fastest run, by the clock and by
// processor time: the latter says more where others use the machine.
func Matmul(ctx context.Context, products []Product, threads int) (*MatmulReport, error) {
	if err := benchmark.Positive("threads", threads); err != nil {
		return nil, err
	}
	r := &MatmulReport{GFLOPS: map[string]float64{}, CPU: map[string]float64{}, Threads: threads,
		Kernels: kernel.Active().String()}
	for _, p := range products {
		speed, perCPU, err := p.measure(ctx, threads)
		if err != nil {
			return nil, err
		}
		r.GFLOPS[p.Name], r.CPU[p.Name] = benchmark.Rounded(speed/1e9, 1), benchmark.Rounded(perCPU/1e9, 1)
	}
	return r, nil
}

// measure returns the floating point operations a second of the fastest run, and those a second of processor time of
// the cheapest one (0 where the system does not tell).
func (p Product) measure(ctx context.Context, threads int) (speed, perCPU float64, err error) {
	g := p.gemm()
	flops := 2 * float64(p.Batch) * float64(p.M) * float64(p.K) * float64(p.N)
	const least, budget = 5, 2e10 // runs, operations
	best, cheapest := math.Inf(1), math.Inf(1)
	for range max(least, int(budget/flops)) {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		used, _ := benchmark.Usage()
		begin := time.Now()
		matmul.BatchGemm(g, p.Batch, p.M*p.K, p.K*p.N, p.M*p.N, threads)
		best = min(best, time.Since(begin).Seconds())
		if now, _ := benchmark.Usage(); now > used {
			cheapest = min(cheapest, (now - used).Seconds())
		}
	}
	return flops / best, flops / cheapest, nil
}

// gemm returns the first product of the batch, with normally distributed operands of the whole batch.
func (p Product) gemm() matmul.Gemm {
	g := matmul.Gemm{
		M: p.M, N: p.N, K: p.K,
		A: make([]float32, p.Batch*p.M*p.K), ARow: p.K, ACol: 1,
		B: make([]float32, p.Batch*p.K*p.N), BRow: p.N, BCol: 1,
		C: make([]float32, p.Batch*p.M*p.N), CRow: p.N,
	}
	if p.TransA {
		g.ARow, g.ACol = 1, p.M
	}
	if p.TransB {
		g.BRow, g.BCol = 1, p.K
	}
	philox.NormalTo(g.A, 0, 0)
	philox.NormalTo(g.B, 0, 1)
	return g
}
