package losses

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/prepare"
)

// A price is that of a strategy that had it no easier.
func TestPrices(t *testing.T) {
	for _, c := range []struct {
		codec                     string
		parameters, steps, rounds int
		loss                      float64 // negative: not measured
	}{
		{"int8", 1e6, 20, 200, 0.008}, {"int8", 1e6, 21, 200, 0.036}, {"int8", 1e6, 20, 199, 0.077},
		{"int8", 1e6, 10, 400, 0.047}, {"int8", 1e6, 10, 399, 0.008}, {"int8", 1000, 20, 1000, 0.008},
		{"int8", 1e6, 20, 10, -1}, {"int8", 1e6, 200, 1000, -1}, {"sign", 1e6, 1, 1000, -1},
		{"fp4", 50e6, 30, 1000, 0.026}, {"fp4", 2e9, 100, 1000, 0.016}, {"fp4", 2e9, 101, 1000, -1},
		{"float32", 50e6, 500, 16, 0.062},
	} {
		p := Measured(c.codec, c.parameters, c.steps, c.rounds)
		if got := (p == nil) == (c.loss < 0) && (p == nil || p.Loss == c.loss && p.Source != ""); !got {
			t.Errorf("%+v: %+v", c, p)
		}
	}
}

// A job that sends whole updates knows what its strategy costs, and no other does.
func TestPenaltyOfAJob(t *testing.T) {
	for set, known := range map[string]bool{
		"strategy.compression.quantize=int8": true, "strategy.compression.quantize=fp4": true,
		"strategy.method=sparseloco": false,
	} {
		j, err := job.Load(jobtest.Small(t).Path, set, "strategy.sync_steps=20", "training.max_steps=400",
			"eval.every_steps=20", "checkpoint.every_steps=20")
		if err != nil {
			t.Fatal(set, err)
		}
		b, err := prepare.New(j)
		if err != nil {
			t.Fatal(set, err)
		}
		if p := Of(b); (p != nil) != known || known && p.Loss <= 0 {
			t.Errorf("%s: %+v", set, p)
		}
	}
}

// Every price of our own is that of three seeds in the table.
func TestPricesAreMeasured(t *testing.T) {
	if base, seeds := lossOf(reference); seeds != 3 || math.Abs(base-1.6154) > 1e-4 {
		t.Errorf("data-parallel training comes to %v with %d seeds", base, seeds)
	}
	for _, m := range prices() {
		if _, seeds := lossOf(m.row); m.row != "" && (seeds != 3 || m.loss <= 0) {
			t.Errorf("%s: %d seeds of %q, a price of %v", m.strategy, seeds, m.row, m.loss)
		}
	}
}

// A job that names a method and nothing else gets the best settings of the table for this method, and not those of a
// paper. The sparse ones in groups of 128 rounds are left out: members keep a checkpoint for each
// (docs/adr/0038-long-groups.md).
func TestDefaultsAreTheBestMeasured(t *testing.T) {
	type setting struct {
		row            string
		steps, moments int
		rate, ratio    float64
		quantize       string
	}
	for method, all := range map[string][]setting{
		"diloco": {
			{"diloco int8, outer rate 0.6", 20, 8, 0.6, 0, "int8"}, {"diloco int8, outer rate 0.5", 20, 8, 0.5, 0, "int8"},
			{"diloco int8", 20, 8, 0.7, 0, "int8"},
			{"diloco int8, rounds of 10", 10, 8, 0.7, 0, "int8"}, {"diloco int8, rounds of 50", 50, 8, 0.7, 0, "int8"},
			{"diloco int8, rounds of 100", 100, 8, 0.7, 0, "int8"},
			{"diloco int8, moments of zero, rate 2e-3", 20, 1, 0.7, 0, "int8"}, {"diloco fp4", 20, 8, 0.7, 0, "fp4"},
		},
		"sparseloco": {
			{"sparseloco 96 of 4096, int2, rounds of 10", 10, 32, 1, 96. / 4096, "int2"},
			{"sparseloco 66 of 4096, signs, rounds of 10", 10, 32, 1, 66. / 4096, "sign"},
		},
	} {
		best := slices.MinFunc(all, func(x, y setting) int {
			a, n := lossOf(x.row)
			b, m := lossOf(y.row)
			if n != 3 || m != 3 {
				t.Fatalf("%q has %d seeds, %q %d", x.row, n, y.row, m)
			}
			return cmp.Compare(a, b)
		})
		j, err := job.Load(jobtest.Small(t).Path, "strategy={method: "+method+", workers: 3}", "training.max_steps=4000",
			"checkpoint.every_steps=null", "eval.every_steps=null")
		if err != nil {
			t.Fatal(err)
		}
		s := j.Strategy
		if got := (setting{best.row, s.SyncSteps, s.OptimizerStateRounds, s.OuterOptimizer.LR, s.Compression.TopKRatio,
			s.Compression.Quantize}); got != best {
			t.Errorf("%s is %+v, and the best of the table %+v", method, got, best)
		}
	}
}

// The example does what a job gets that says nothing of it, and so do the templates of which nothing else is asked.
func TestExampleHasTheDefaults(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "..", "examples", "quickstart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	said, err := job.Parse(source, "quickstart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var unsaid []string
	for _, key := range []string{"sync_steps", "outer_optimizer", "optimizer_state_rounds", "compression", "aggregation"} {
		unsaid = append(unsaid, "strategy."+key+"=null")
	}
	plain, err := job.Parse(source, "quickstart.yaml", unsaid...)
	if err != nil {
		t.Fatal(err)
	}
	s, d := said.Strategy, plain.Strategy
	if s.SyncSteps != d.SyncSteps || s.OptimizerStateRounds != d.OptimizerStateRounds ||
		s.Compression.Quantize != d.Compression.Quantize || !reflect.DeepEqual(s.OuterOptimizer, d.OuterOptimizer) {
		t.Errorf("%+v, and the defaults are %+v", s, d)
	}
}
