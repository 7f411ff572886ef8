package machine

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/node/benchmark"
)

// NumericsReport compares version 2 of the numerics with version 1, in turn in one process: processor time of version 1
// by that of version 2.
type NumericsReport struct {
	Step      float64            `json:"step"`      // a step of the preset
	Functions map[string]float64 `json:"functions"` // by name, on normal numbers in the first-level cache
	Bars      []benchmark.Bar    `json:"bars"`      // none for other presets than gpt2-10m
}

// String is the report for people.
func (r *NumericsReport) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "a step     %.3f\n", r.Step)
	for _, name := range slices.Sorted(maps.Keys(r.Functions)) {
		fmt.Fprintf(&b, "%-10s %.2f\n", name, r.Functions[name])
	}
	return b.String()
}

// Numerics measures steps of a preset in both versions, and their functions, a number of times, and takes the cheapest
// of each.
func Numerics(ctx context.Context, p Preset, threads, times int) (*NumericsReport, error) {
	for name, n := range map[string]int{"threads": threads, "times": times} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	steps, err := versionSteps(ctx, p, threads, times)
	if err != nil {
		return nil, err
	}
	r := &NumericsReport{Step: benchmark.Rounded(steps[0]/steps[1], 3), Functions: map[string]float64{}}
	first, second := functionsOf(kernel.Version1), functionsOf(kernel.Version2)
	for i, f := range first {
		took := cheapest(times, func() { f.run() }, func() { second[i].run() })
		r.Functions[f.name] = benchmark.Rounded(took[0]/took[1], 2)
	}
	if p.Name == "gpt2-10m" {
		r.Bars = append(r.Bars, benchmark.AtLeast("a step of gpt2-10m in version 2 of the numerics, of one in version 1",
			r.Step, 1.05))
	}
	return r, nil
}

// versionSteps is the processor time of a step in each version.
func versionSteps(ctx context.Context, p Preset, threads, times int) ([]float64, error) {
	c, err := architecture.Parse(p.Architecture, p.Config)
	if err != nil {
		return nil, err
	}
	var failed error
	var steps []func()
	for _, version := range []uint32{kernel.Version1, kernel.Version2} {
		step, err := model.TrainStep(c, AdamW(0.1, 0), p.Batch, p.Length)
		if err != nil {
			return nil, err
		}
		t, err := ProgramTrainer(step.In(version), Recipe{Optimizer: AdamW(0.1, 0), Rate: 3e-4, Threads: threads}, c.Init(0))
		if err != nil {
			return nil, err
		}
		random := philox.New(0, 0)
		for i := range t.Tokens() {
			t.Tokens()[i] = int32(random.Uint64n(uint64(c.VocabSize())))
		}
		steps = append(steps, func() {
			if failed == nil && ctx.Err() == nil {
				_, failed = t.Step()
			}
		})
	}
	took := cheapest(times, steps...)
	if failed == nil {
		failed = ctx.Err()
	}
	return took, failed
}

// cheapest is the least processor time of each of some functions, which are called in turn, once more than is counted.
func cheapest(times int, list ...func()) []float64 {
	least := slices.Repeat([]float64{math.Inf(1)}, len(list))
	for turn := range times + 1 {
		for i, f := range list {
			if took := cost(f); turn > 0 { // the first one touches new memory
				least[i] = min(least[i], took)
			}
		}
	}
	return least
}

// measured is a function on slices that is measured.
type measured struct {
	name string
	run  func()
}

// functionsOf are the functions of a version, each on as many elements that it takes some milliseconds.
func functionsOf(version uint32) (list []measured) {
	const elements, rounds = 4096, 2000
	m, x, dst := elementary.Math{Version: version}, make([]float32, elements), make([]float32, elements)
	philox.NormalTo(x, 1, 1)
	positive := make([]float32, elements)
	for i, v := range x {
		positive[i] = v * v
	}
	again := func(name string, f func()) {
		list = append(list, measured{name, func() {
			for range rounds {
				f()
			}
		}})
	}
	again("exp", func() { m.Exp(dst, x) })
	again("log", func() { m.Log(dst, positive) })
	again("tanh", func() { m.Tanh(dst, x) })
	again("logistic", func() { m.Logistic(dst, x) })
	again("rsqrt", func() { m.Rsqrt(dst, positive) })
	again("erf", func() { m.Erf(dst, x) })
	again("sin", func() { m.Sin(dst, x) })
	again("cos", func() { m.Cos(dst, x) })
	again("gelu", func() { m.Gelu(dst, x) })
	again("gelu_grad", func() { m.GeluGrad(dst, x, positive) })
	again("silu", func() { m.Silu(dst, x) })
	again("silu_grad", func() { m.SiluGrad(dst, x, positive) })
	return list
}
