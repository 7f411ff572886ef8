package recommend

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/losses"
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
			apart = 0.8
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

// Every recommendation has a measured price.
func TestEveryRecommendationHasAPrice(t *testing.T) {
	for _, r := range slices.Concat(recipes, ofGradients[1:]) {
		if losses.Measured(r.price, math.MaxInt, 1, math.MaxInt) == nil {
			t.Errorf("%s has no price", r.name)
		}
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
