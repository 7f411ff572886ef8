package machine

import (
	"context"
	"fmt"
	"math"
	"slices"
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

// layers are the products of a layer of gpt2-10m and of its gradients: of its inputs and of its weights.
func layers() (list []Product) {
	const tokens, width = 2048, 384
	for _, l := range []struct{ in, out int }{{width, 3 * width}, {width, width}, {width, 4 * width}, {4 * width, width}} {
		list = append(list, Product{Batch: 1, M: tokens, K: l.in, N: l.out},
			Product{Batch: 1, M: tokens, K: l.out, N: l.in, TransB: true},
			Product{Batch: 1, M: l.in, K: tokens, N: l.out, TransA: true})
	}
	return list
}

// Integers measures the products and the steps of each form in turn, a number of times, and takes the cheapest of each.
func Integers(ctx context.Context, threads, times int) (*IntegersReport, error) {
	for name, n := range map[string]int{"threads": threads, "times": times} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	r := &IntegersReport{Products: map[string]float64{}, Step: map[string]float64{}, VNNI: exact.VNNI()}
	forms := []exact.Form{{}, exact.Forms["exact8"], exact.Forms["exact15"]}
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
	for _, l := range layers() {
		g := l.gemm()
		least := slices.Repeat([]float64{math.Inf(1)}, len(forms))
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
	least := slices.Repeat([]float64{math.Inf(1)}, len(forms))
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
