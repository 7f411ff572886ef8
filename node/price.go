package node

import "fmt"

// Price is what a strategy costs in loss, as somebody measured it.
type Price struct {
	Loss   float64 `json:"loss"`   // how much higher it is than that of data-parallel training on as many tokens: 0.02 is 2 %
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
}

// Sources of prices.
const (
	streaming  = "Douillard et al. 2025 (arXiv 2501.18512), C4"
	forgather  = "the Forgather sweep, FineWeb-Edu"
	calibrated = "docs/strategies.md, tiny Shakespeare"
)

// published is for how many rounds at least the runs of papers went on that do not say it.
const published = 100

// smallest is the smallest model that somebody measured: it stands for those that are smaller.
const smallest = 0.2e6

// prices are what is known. Moments of the inner optimizer last from round to round in those of papers, and as long as in advice in
// those of docs/strategies.md. What was measured in 4 bits is no harder in 32.
var prices = []measured{
	{"fp4", 35e6, 30, published, 0.026, 4, streaming}, {"fp4", 35e6, 100, published, 0.037, 4, streaming},
	{"fp4", 100e6, 30, published, 0.019, 4, streaming}, {"fp4", 100e6, 100, published, 0.031, 4, streaming},
	{"fp4", 300e6, 30, published, 0.014, 4, streaming}, {"fp4", 300e6, 100, published, 0.025, 4, streaming},
	{"fp4", 1e9, 30, published, 0.004, 4, streaming}, {"fp4", 1e9, 100, published, 0.016, 4, streaming},
	{"float32", 35e6, 30, published, 0.009, 2, streaming}, {"float32", 100e6, 30, published, 0.006, 2, streaming},
	{"float32", 300e6, 30, published, 0.004, 2, streaming}, {"float32", 1e9, 30, published, 0, 2, streaming},
	{"float32", 34.4e6, 500, 16, 0.062, 2, forgather},
	{"fp4", 0.2e6, 20, 200, 0.011, 4, calibrated}, {"fp4", 0.2e6, 20, 20, 0.076, 4, calibrated},
	{"float32", 0.2e6, 20, 200, 0.011, 4, calibrated}, {"float32", 0.2e6, 20, 20, 0.076, 4, calibrated},
	{"int8", 0.2e6, 10, 400, 0.047, 4, calibrated}, {"int8", 0.2e6, 20, 200, 0.015, 4, calibrated}, {"int8", 0.2e6, 50, 80, 0.036, 4, calibrated},
	{"int8", 0.2e6, 100, 40, 0.068, 4, calibrated}, {"int8", 0.2e6, 20, 20, 0.077, 4, calibrated},
	{"paced", 0.2e6, 20, 354, 0.021, 4, calibrated}, {"late int8", 0.2e6, 20, 200, 0.077, 4, calibrated}, {"late fragments", 0.2e6, 20, 200, 0.047, 4, calibrated},
	{"fragments", 0.2e6, 20, 200, 0.019, 4, calibrated}, {"random", 0.2e6, 20, 200, 0.118, 4, calibrated},
	{"zero", 0.2e6, 20, 200, 0.056, 4, calibrated}, {"third", 0.2e6, 20, 200, 0.013, 4, calibrated}, {"third", 0.2e6, 20, 20, 0.110, 4, calibrated},
	{"top96", 0.2e6, 10, 400, 0.016, 4, calibrated}, {"top96", 0.2e6, 20, 20, 0.079, 4, calibrated},
	{"top66", 0.2e6, 10, 400, 0.024, 4, calibrated}, {"top66", 0.2e6, 10, 40, 0.048, 4, calibrated},
	{"waves", 0.2e6, 1, 4000, 0.166, 4, calibrated}, {"signs of waves", 0.2e6, 1, 4000, 0.193, 4, calibrated},
}

// priceOf is what a strategy was measured to cost where it had it no easier: in rounds that were as long or longer, and no more
// of them, of a model no larger, since a larger one loses less. Of several the nearest in size counts, then in the length of
// rounds, then in their number. Nil: nobody measured that.
func priceOf(strategy string, parameters, steps, rounds int) *Price {
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
	for i := range prices {
		m := &prices[i]
		harder := m.steps >= steps && m.rounds <= rounds && m.parameters <= max(float64(parameters), smallest)
		if m.strategy == strategy && harder && (best == nil || closer(m, best)) {
			best = m
		}
	}
	if best == nil {
		return nil
	}
	return &Price{Loss: best.loss, Source: best.String()}
}

func (m measured) String() string {
	return fmt.Sprintf("%g M parameters, %d workers, rounds of %d steps: %s", m.parameters/1e6, m.workers, m.steps, m.source)
}
