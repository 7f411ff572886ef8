// Package losses holds how much higher the measured loss of each training strategy is than that of data-parallel
// training on as many tokens. It measures nothing; starling bench strategies does.
package losses

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/starling-network/starling/node/prepare"
)

// Penalty is the measured cost of a strategy in loss.
type Penalty struct {
	// how much higher it is than that of data-parallel training on as many tokens: 0.02 is 2 %
	Loss   float64 `json:"loss"`
	Source string  `json:"source"` // on what, and by whom
}

// measured is a strategy whose loss was compared with data-parallel training on as many tokens.
type measured struct {
	strategy      string // what recipes call it
	parameters    float64
	steps, rounds int // of a round; and of the run, at least
	loss          float64
	workers       int
	source        string
	row           string // of strategies.jsonl, which has the loss; "": the loss is given here
}

// Sources of prices.
const (
	streaming  = "Douillard et al. 2025 (arXiv 2501.18512), C4"
	forgather  = "the Forgather sweep, FineWeb-Edu"
	calibrated = "docs/strategies.md, tiny Shakespeare"
)

// published is the assumed number of rounds of published runs whose paper does not state it.
const published = 100

// smallest is the smallest measured model: it stands for all smaller ones.
const smallest = 0.2e6

// reference is the row of strategies.jsonl that the others are compared with.
const reference = "data parallel"

// strategies are the runs of the tables of docs/strategies.md, a line each, as bench strategies --keep writes them.
//
//go:embed strategies.jsonl
var strategies string

// lossOf is the mean of the losses of a row of strategies.jsonl over its seeds, and how many those are.
func lossOf(row string) (loss float64, seeds int) {
	for line := range strings.Lines(strategies) {
		var run struct {
			Name string  `json:"name"`
			Loss float64 `json:"loss"`
		}
		if json.Unmarshal([]byte(line), &run) == nil && run.Name == row {
			loss, seeds = loss+run.Loss, seeds+1
		}
	}
	return loss / float64(max(1, seeds)), seeds
}

// table is what this repository measured, with a model of 0.2 M parameters and four workers, on 4,000 steps.
func table(strategy, row string, steps, rounds int) measured {
	return measured{strategy: strategy, parameters: smallest, steps: steps, rounds: rounds, workers: 4,
		source: calibrated, row: row}
}

// short is the same on 400 steps, with one seed.
func short(strategy string, steps, rounds int, loss float64) measured {
	return measured{strategy: strategy, parameters: smallest, steps: steps, rounds: rounds, loss: loss, workers: 4,
		source: calibrated}
}

// paper is what others measured.
func paper(strategy string, parameters float64, steps, rounds int, loss float64, workers int, source string) measured {
	return measured{strategy: strategy, parameters: parameters, steps: steps, rounds: rounds, loss: loss,
		workers: workers, source: source}
}

// prices are the known measurements. In those of papers the moments of the inner optimizer last from round to round;
// in those of docs/strategies.md they last as long as in the recommendations. A measurement with 4 bits also holds
// for 32 bits.
var prices = sync.OnceValue(func() []measured {
	all := []measured{
		paper("fp4", 35e6, 30, published, 0.026, 4, streaming), paper("fp4", 35e6, 100, published, 0.037, 4, streaming),
		paper("fp4", 100e6, 30, published, 0.019, 4, streaming), paper("fp4", 100e6, 100, published, 0.031, 4, streaming),
		paper("fp4", 300e6, 30, published, 0.014, 4, streaming), paper("fp4", 300e6, 100, published, 0.025, 4, streaming),
		paper("fp4", 1e9, 30, published, 0.004, 4, streaming), paper("fp4", 1e9, 100, published, 0.016, 4, streaming),
		paper("float32", 35e6, 30, published, 0.009, 2, streaming),
		paper("float32", 100e6, 30, published, 0.006, 2, streaming),
		paper("float32", 300e6, 30, published, 0.004, 2, streaming), paper("float32", 1e9, 30, published, 0, 2, streaming),
		paper("float32", 34.4e6, 500, 16, 0.062, 2, forgather),
		table("fp4", "diloco fp4", 20, 200), table("float32", "diloco fp4", 20, 200),
		table("int8", "diloco int8, outer rate 0.6", 20, 200), table("int8", "diloco int8, rounds of 10", 10, 400),
		table("int8", "diloco int8, rounds of 50", 50, 80), table("int8", "diloco int8, rounds of 100", 100, 40),
		table("paced", "async_diloco, paces 1, 0.77, 0.38 and 0.17", 20, 354),
		table("late int8", "diloco int8, overlap 1, outer rate 0.4", 20, 200),
		table("late fragments", "streaming_diloco fp4, 2 fragments, overlap 1", 20, 200),
		table("fragments", "streaming_diloco fp4, 2 fragments", 20, 200), table("random", "sparta_diloco, 1 of 32", 20, 200),
		table("zero", "diloco int8, moments of zero, rate 2e-3", 20, 200),
		table("third", "diloco, signs of 1365 of 4096, outer rate 0.5", 20, 200),
		table("top96", "sparseloco 96 of 4096, int2, rounds of 10", 10, 400),
		table("top66", "sparseloco 66 of 4096, signs, rounds of 10", 10, 400),
		table("waves", "demo, 32 of 4096, bf16, rate 1e-3", 1, 4000),
		table("signs of waves", "demo, 32 of 4096, signs, rate 1e-3", 1, 4000),
		short("fp4", 20, 20, 0.076), short("float32", 20, 20, 0.076), short("int8", 20, 20, 0.077),
		short("third", 20, 20, 0.110),
		short("top96", 20, 20, 0.079), short("top66", 10, 40, 0.048),
	}
	base, _ := lossOf(reference)
	for i := range all {
		if m := &all[i]; m.row != "" {
			loss, _ := lossOf(m.row)
			m.loss = math.Round(1000*(loss/base-1)) / 1000
		}
	}
	return all
})

// Of is the measured loss of the strategy of a job, if the strategy sends whole updates in full precision or in
// 8 or 4 bits; nil for others, and where there is no measurement.
func Of(b *prepare.CompiledJob) *Penalty {
	s := b.Job.Strategy
	name, known := map[string]string{"none": "float32", "int8": "int8", "fp4": "fp4"}[s.Compression.Quantize]
	if !known || s.Method != "diloco" || s.Compression.TopKRatio != 0 || s.Compression.Transform != "none" {
		return nil
	}
	return Measured(name, b.Model.Parameters(), int(b.Spec.Steps), int(b.Spec.Rounds))
}

// Measured is the cost in loss of a strategy in the nearest measurement under harder conditions: rounds as long or
// longer, no more rounds, and a model no larger, since a larger one loses less. Among several, the nearest in size is
// preferred, then in the length of rounds, then in their number. Nil: there is none.
func Measured(strategy string, parameters, steps, rounds int) *Penalty {
	var best *measured
	closer := func(a, b *measured) bool {
		switch {
		case a.parameters != b.parameters:
			return a.parameters > b.parameters
		case a.steps != b.steps:
			return a.steps < b.steps
		}
		return a.rounds > b.rounds
	}
	for i := range prices() {
		m := &prices()[i]
		harder := m.steps >= steps && m.rounds <= rounds && m.parameters <= max(float64(parameters), smallest)
		if m.strategy == strategy && harder && (best == nil || closer(m, best)) {
			best = m
		}
	}
	if best == nil {
		return nil
	}
	return &Penalty{Loss: best.loss, Source: best.String()}
}

func (m measured) String() string {
	return fmt.Sprintf("%g M parameters, %d workers, rounds of %d steps: %s", m.parameters/1e6, m.workers, m.steps,
		m.source)
}
