package recommend

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/sim/link"
)

// slow is a network on which a unit of smallJob takes as long as its exchange.
var slow = simulate.Options{
	Seed: 1, Links: []link.Link{{Latency: time.Second / 10, Up: 6000, Down: 9000}}, Gflops: []float64{0.0003},
	Verifiers: 2, Validators: 1, BlockTime: time.Second, Threads: 1,
	Acts: map[string]string{"verifier-0": "idle", "verifier-1": "idle"}, // what verifiers fetch to watch is not in advice
}

func advise(t *testing.T, n simulate.Options, set ...string) (*Ranking, func(...string) (*job.Job, error)) {
	t.Helper()
	path := jobtest.Small(t).Path
	load := func(more ...string) (*job.Job, error) { return job.Load(path, slices.Concat(set, more)...) }
	a, err := Recommend(t.Context(), Options{Load: load, Network: n, MostPrice: 0.02})
	if err != nil {
		t.Fatal(err)
	}
	return a, load
}

// The recommended figures are those of a simulation of the same settings.
func TestAdviceIsWhatASimulationShows(t *testing.T) {
	onlyLong(t)
	a, load := advise(t, slow, "training.max_steps=32", "strategy.verification.fraction=0.1")
	for _, name := range []string{"diloco int8, moments of zero", "sparseloco 66 of 4096, sign", "diloco int8",
		"diloco int8, overlapping", "streaming_diloco 2 fragments, fp4, overlapping"} {
		i := slices.IndexFunc(a.Candidates, func(c Candidate) bool { return c.Name == name && c.SyncSteps == 4 })
		c := a.Candidates[i]
		j, err := load(c.Set...)
		if err != nil {
			t.Fatal(err)
		}
		opt := slow
		opt.Job = j
		s, err := simulate.Run(t.Context(), opt)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.4f of the time in inner steps and %.0f s advised, %.4f and %.0f s played", name, c.Utilisation,
			c.Seconds, s.Utilisation, s.Seconds)
		if math.Abs(c.Utilisation-s.Utilisation) > 0.03 {
			t.Errorf("%s: more than 3 points apart", name)
		}
		received := float64(c.ReceivedBytes) * float64(c.Rounds)
		for _, p := range s.Parties { // workers get updates; the state that units pass on goes to auditors
			if strings.HasPrefix(p.Name, "worker") && math.Abs(float64(p.BytesDown)/received-1) > 0.03 {
				t.Errorf("%s: %s receives %d bytes, %.0f were advised", name, p.Name, p.BytesDown, received)
			}
		}
		sent, apart := float64(s.BytesUp)/float64(c.Rounds*a.Workers), 0.03
		if name != "diloco int8, moments of zero" {
			// the state that units pass on goes to auditors, which are drawn: over the few rounds of the play, and over
			// four times as many in the recommendation
			apart = 0.6
		}
		if ratio := sent / float64(c.SentBytes); math.Abs(ratio-1) > apart {
			t.Errorf("%s: a worker sends %.0f bytes in a round, %d were advised", name, sent, c.SentBytes)
		}
	}
}

// The line of the best is a job, and fits the other keys of the file; the worse the link, the shorter its updates.
func TestAdviceForLinks(t *testing.T) {
	set := []string{"training.max_steps=4000", "checkpoint.every_steps=12", "strategy.verification.mode=none"}
	fast, load := advise(t, simulate.Options{Links: []link.Link{link.Profiles["lan"]}, Gflops: []float64{0.001},
		BlockTime: time.Second}, set...)
	j, err := load(fast.Set...)
	if err != nil || j.Checkpoint.EverySteps%j.Strategy.SyncSteps != 0 {
		t.Fatalf("%v: %v", fast.Set, err)
	}
	best := fast.Candidates[0]
	if best.Price == nil || best.Price.Loss > 0.02 || !best.Fits ||
		fast.Line != "--set '"+strings.Join(fast.Set, "' --set '")+"'" {
		t.Errorf("best on a fast link: %+v\n%s", best, fast.Line)
	}
	poor, _ := advise(t, simulate.Options{Links: []link.Link{{Up: 100, Down: 100}}, Gflops: []float64{0.001},
		BlockTime: time.Second}, set...)
	if worse := poor.Candidates[0]; worse.UpdateBytes >= best.UpdateBytes || worse.Utilisation >= best.Utilisation {
		t.Errorf("best on a poor link: %+v\nand on a fast one: %+v", worse, best)
	}
}

// A strategy that the job cannot have is listed with the reason.
func TestAdviceRefuses(t *testing.T) {
	for name, c := range map[string]struct{ set, refused, why string }{
		"a robust rule":  {"strategy.aggregation.rule=median", "sparseloco 66 of 4096, sign", "median"},
		"tolerant work":  {"training.numerics=tolerant", "diloco int8", "no audit could check it"},
		"a small budget": {"budget.max_cost=0.000001", "diloco int8", demand.ErrBudget.Error()},
	} {
		a, _ := advise(t, slow, c.set)
		for _, x := range a.Candidates {
			if refused := strings.Contains(x.Refused, c.why); x.Name == c.refused && !refused {
				t.Errorf("%s: %s with rounds of %d steps: %q", name, x.Name, x.SyncSteps, x.Refused)
			}
		}
	}
}

// Data-parallel training is on the list, at no price in loss, and not advised where a round is mostly its exchange.
func TestAdviceKnowsDataParallelTraining(t *testing.T) {
	a, load := advise(t, slow, "training.max_steps=32")
	i := slices.IndexFunc(a.Candidates, func(c Candidate) bool { return c.Name == "data parallel" })
	c := a.Candidates[i]
	if i == 0 || c.Refused != "" || c.Rounds != 32 || c.Price == nil || c.Price.Loss != 0 || c.StateBytes == 0 {
		t.Errorf("number %d: %+v", i, c)
	}
	if j, err := load(c.Set...); err != nil || !j.Strategy.OuterOptimizer.Gradients() || j.Rounds() != 32 {
		t.Errorf("%v is %v", c.Set, err)
	}
}

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
		p := priceOf(c.codec, c.parameters, c.steps, c.rounds)
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
		if p := Penalty(b); (p != nil) != known || known && p.Loss <= 0 {
			t.Errorf("%s: %+v", set, p)
		}
	}
}

// For machines of different speeds units are made to measure: the slowest is waited for no longer than the fastest.
func TestAdviceForPaces(t *testing.T) {
	n := slow
	n.Gflops = []float64{0.0003, 0.0003, 0.00015}
	a, load := advise(t, n, "training.max_steps=32")
	inner := map[string]float64{}
	for _, c := range a.Candidates {
		if c.SyncSteps != 4 {
			continue
		}
		inner[c.Name] = c.InnerSeconds
		if c.Name != "async_diloco int8, paces of the machines" {
			continue
		}
		j, err := load(c.Set...)
		if err != nil || !slices.Equal(j.Strategy.Workers.RelativeSpeeds, []float64{1, 1, 0.5}) ||
			c.Price != nil || c.Refused != "" {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if whole, paced := inner["diloco int8"],
		inner["async_diloco int8, paces of the machines"]; !(paced > 0) || math.Abs(whole/paced-2) > 1e-6 {
		t.Errorf("rounds of whole units take %g s, of units to measure %g s", whole, paced)
	}
	same, _ := advise(t, slow, "training.max_steps=32")
	if slices.ContainsFunc(same.Candidates, func(c Candidate) bool { return strings.HasPrefix(c.Name, "async") }) {
		t.Error("paces are advised for machines of one speed")
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
	for _, r := range slices.Concat(recipes, ofGradients[1:]) {
		if !slices.ContainsFunc(prices(), func(m measured) bool { return m.strategy == r.price }) {
			t.Errorf("%s has no price", r.name)
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

// A strategy whose known price exceeds the limit is not recommended in place of the job's own, which is marked.
func TestAdviceLeavesTheJobWhereNothingIsKnown(t *testing.T) {
	a, _ := advise(t, slow, "training.max_steps=320", "checkpoint.every_steps=null", "eval.every_steps=null",
		"strategy={method: diloco, workers: 3}")
	if best := a.Candidates[0]; best.Price == nil || best.Price.Loss <= a.MostPrice || a.Set != nil || a.Line != "" {
		t.Errorf("%+v is advised with %q", best, a.Line)
	}
	var own []string
	for _, c := range a.Candidates {
		if c.Own {
			own = append(own, c.Name)
		}
	}
	if !slices.Equal(own, []string{"diloco int8"}) {
		t.Errorf("the job does %q", own)
	}
	other, _ := advise(t, slow, "strategy.outer_optimizer={name: sgd, lr: 0.9}")
	if i := slices.IndexFunc(other.Candidates, func(c Candidate) bool { return c.Own }); i < 0 ||
		other.Candidates[i].Name != asItIs {
		t.Errorf("what the job does is number %d", i)
	}
}
