package model

import (
	"math"
	"testing"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
)

// TestExact trains with layers that multiply integers: near the steps in float32, nearer with more bits, with the loss
// of Eval and the same bits on every path.
func TestExact(t *testing.T) {
	o := optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}
	for name, c := range tiny(t) {
		tokens := someTokens(c, testBatch, testLength+1, 51)
		in := stepInputs(c.Init(5), tokens, o, 0.01)
		var whole float64
		for _, f := range []exact.Form{{}, {Bits: 15, Block: 64}, {Bits: 8, Block: 64}} {
			task, err := LanguageOf(c, Batch{Sequences: testBatch, Length: testLength, Form: f})
			if err != nil {
				t.Fatal(err)
			}
			p, err := task.TrainStep(o)
			out := mustRun(t, mustCompile(t, p, err), in)
			products := 0
			for _, op := range p.Ops {
				if op.Kind == program.DotExact {
					products++
				}
			}
			if f.Bits == 0 {
				whole = scalar(out["loss"])
				if products != 0 {
					t.Errorf("%s: %d products of integers in float32", name, products)
				}
				continue
			}
			if products%3 != 0 || products < 12 { // each with two gradients
				t.Errorf("%s: %d products of integers", name, products)
			}
			if apart := math.Abs(scalar(out["loss"]) - whole); apart == 0 || apart > map[int]float64{15: 1e-5, 8: 2e-3}[f.Bits] {
				t.Errorf("%s, %d bits: loss %v, in float32 %v", name, f.Bits, scalar(out["loss"]), whole)
			}
			p, err = task.Eval()
			if loss := mustRun(t, mustCompile(t, p, err), evalInputs(task, in))["loss"]; loss.Root() != out["loss"].Root() {
				t.Errorf("%s: Eval has another loss than the step", name)
			}
			p, err = task.TrainStep(o)
			defer func(path kernel.Path) { _ = kernel.Select(path.String()) }(kernel.Active())
			if err := kernel.Select(kernel.Portable.String()); err != nil {
				t.Fatal(err)
			}
			for n, x := range mustRun(t, mustCompile(t, p, err), in) {
				if x.Root() != out[n].Root() {
					t.Errorf("%s, %d bits: another %s on the portable path", name, f.Bits, n)
				}
			}
			if err := kernel.Select(""); err != nil {
				t.Fatal(err)
			}
		}
	}
}
