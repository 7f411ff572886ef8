package machine

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/node/benchmark"
)

// IntegersReport compares products of integers with those of float32: processor time of float32 by that of integers of
// some bits, "8" and "15", as the layers of gpt2-10m have them with training.precision exact8 and exact15.
type IntegersReport struct {
	Products map[string]float64 `json:"products"` // of the layers and of their gradients, together
	Step     map[string]float64 `json:"step"`     // a whole step of training
	VNNI     bool               `json:"vnni"`     // AVX-512 VNNI is in use
	Bars     []benchmark.Bar    `json:"-"`        // none without it
}

// layers are the products of a layer of gpt2-10m and of its gradients.
var layers = []Product{
	{Name: "qkv", M: 2048, K: 384, N: 1152}, {Name: "qkv_dx", M: 2048, K: 1152, N: 384, TransB: true},
	{Name: "qkv_dw", M: 384, K: 2048, N: 1152, TransA: true},
	{Name: "out", M: 2048, K: 384, N: 384}, {Name: "out_dx", M: 2048, K: 384, N: 384, TransB: true},
	{Name: "out_dw", M: 384, K: 2048, N: 384, TransA: true},
	{Name: "fc", M: 2048, K: 384, N: 1536}, {Name: "fc_dx", M: 2048, K: 1536, N: 384, TransB: true},
	{Name: "fc_dw", M: 384, K: 2048, N: 1536, TransA: true},
	{Name: "proj", M: 2048, K: 1536, N: 384}, {Name: "proj_dx", M: 2048, K: 384, N: 1536, TransB: true},
	{Name: "proj_dw", M: 1536, K: 2048, N: 384, TransA: true},
}

// Integers measures the products and the steps of each form in turn, a number of times, and takes the cheapest of each.
func Integers(ctx context.Context, threads, times int) (*IntegersReport, error) {
	r := &IntegersReport{Products: map[string]float64{}, Step: map[string]float64{}, VNNI: exact.VNNI()}
	forms := []exact.Form{{}, {Bits: 8, Block: 64}, {Bits: 15, Block: 64}}
	products, err := productTimes(ctx, forms, threads, times)
	if err != nil {
		return nil, err
	}
	steps, err := stepTimes(ctx, forms, threads, times)
	if err != nil {
		return nil, err
	}
	for i, f := range forms[1:] {
		bits := fmt.Sprint(f.Bits)
		r.Products[bits] = benchmark.Rounded(products[0]/products[i+1], 3)
		r.Step[bits] = benchmark.Rounded(steps[0]/steps[i+1], 3)
	}
	if r.VNNI {
		r.Bars = append(r.Bars,
			benchmark.AtLeast("products of gpt2-10m in 8 bits with VNNI, of those of float32", r.Products["8"], 1.8),
			benchmark.AtLeast("products of gpt2-10m in 15 bits with VNNI, of those of float32", r.Products["15"], 0.8),
			benchmark.AtLeast("a step of gpt2-10m in 8 bits with VNNI, of one in float32", r.Step["8"], 1.3))
	}
	return r, nil
}

// productTimes is the processor time of all layers in each form; that of no bits is float32.
func productTimes(ctx context.Context, forms []exact.Form, threads, times int) ([]float64, error) {
	sum := make([]float64, len(forms))
	for _, l := range layers {
		l.Batch = 1
		g := l.gemm()
		least := fill(math.Inf(1), len(forms))
		for range times {
			for i, f := range forms {
				if err := ctx.Err(); err != nil {
					return nil, err
				}
				least[i] = min(least[i], cost(func() {
					if f.Bits == 0 {
						matmul.BatchGemm(g, 1, 0, 0, 0, threads)
					} else {
						exact.Batch(f)(g, 1, 0, 0, 0, threads)
					}
				}))
			}
		}
		for i := range sum {
			sum[i] += least[i]
		}
	}
	return sum, nil
}

// stepTimes is the processor time of a step of gpt2-10m whose layers multiply in each form.
func stepTimes(ctx context.Context, forms []exact.Form, threads, times int) ([]float64, error) {
	p, err := PresetNamed("gpt2-10m")
	if err != nil {
		return nil, err
	}
	c, err := architecture.Parse(p.Architecture, p.Config)
	if err != nil {
		return nil, err
	}
	var trainers []*Trainer
	for _, f := range forms {
		task, err := model.LanguageOf(c, model.Batch{Sequences: p.Batch, Length: p.Length, Form: f})
		if err != nil {
			return nil, err
		}
		step, err := task.TrainStep(AdamW(0.1, 0))
		if err != nil {
			return nil, err
		}
		t, err := ProgramTrainer(step, Recipe{Optimizer: AdamW(0.1, 0), Rate: 3e-4, Threads: threads}, c.Init(0))
		if err != nil {
			return nil, err
		}
		random := philox.New(0, 0)
		for i := range t.Tokens() {
			t.Tokens()[i] = int32(random.Uint64n(uint64(c.VocabSize())))
		}
		trainers = append(trainers, t)
	}
	least := fill(math.Inf(1), len(forms))
	for turn := range times + 1 {
		for i, t := range trainers {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			took := cost(func() { _, err = t.Step() })
			if err != nil {
				return nil, err
			}
			if turn > 0 { // the first one touches new memory
				least[i] = min(least[i], took)
			}
		}
	}
	return least, nil
}

// cost is the processor time of a call, or its time by the clock where the system does not tell.
func cost(call func()) float64 {
	used, _ := benchmark.Usage()
	begin := time.Now()
	call()
	if now, _ := benchmark.Usage(); now > used {
		return (now - used).Seconds()
	}
	return time.Since(begin).Seconds()
}

func fill(v float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = v
	}
	return out
}
