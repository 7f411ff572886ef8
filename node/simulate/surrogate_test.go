package simulate

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/protocol/market"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/link"
)

// modelledLine is what takes a few seconds of a round, as units do at modelledSpeeds.
var (
	modelledLine   = link.Link{Latency: 50 * time.Millisecond, Up: 1e5, Down: 2e5}
	modelledSpeeds = []float64{0.001, 0.0007, 0.0004}
)

// play plays a job, and the same with something that stands in for it.
func play(t *testing.T, j *job.Job, acts map[string]string) (real, model *Simulation) {
	t.Helper()
	for _, modelled := range []bool{false, true} {
		s, err := Run(t.Context(), Options{
			Job: j, Seed: 3, Links: []link.Link{modelledLine}, Gflops: modelledSpeeds, Validators: 1, BlockTime: time.Second,
			Threads: 1, Acts: acts, Modelled: modelled,
			Faults: []sim.Fault{{Who: "worker-0", At: 40 * time.Second, For: 5 * time.Second}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if real == nil {
			real = s
		}
		model = s
	}
	return real, model
}

// The surrogate of a job has the time, the bytes and the pay of the job, with every strategy. With slices and
// fragments, which divide a small model differently, the bytes are about those of the job.
func TestModelledIsAsLongAsTheJob(t *testing.T) {
	for name, c := range map[string]struct {
		set  []string
		away float64 // share of the bytes
		// share of the utilisation, where the draw decides how fast the workers of units of different sizes are; 0: hardly
		// any
		drawn float64
	}{
		"diloco": {nil, 1e-3, 0},
		"relative speeds": {[]string{"strategy.method=async_diloco",
			"strategy.workers={target: 3, relative_speeds: [0.5, 1, 0.5]}"}, 1e-3,
			0.15},
		"sparse": {[]string{"strategy.method=sparseloco", "strategy.compression.quantize=sign"}, 1e-3, 0},
		"gradients": {[]string{"strategy.method=allreduce", "strategy.compression.quantize=none", "strategy.sync_steps=1"},
			1e-3, 0},
		"overlapping": {[]string{"strategy.method=streaming_diloco", "strategy.replicas.overlap=1",
			"strategy.replicas.rounds=3", "strategy.sync_steps=2"}, 0.1, 0},
		"slices": {[]string{"strategy.workers=6", "strategy.aggregation.slices=3"}, 0.1, 0},
	} {
		if !*long && name != "slices" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			j, err := job.Load(jobtest.Small(t).Path,
				append(c.set, "training.max_steps=8", "strategy.verification.fraction=1")...)
			if err != nil {
				t.Fatal(err)
			}
			real, model := play(t, j, nil)
			if !model.Modelled || model.StateRoot != (canon.Digest{}) || model.FinalEvalLoss != 0 {
				t.Errorf("a modelled job has a loss of %v and the root %s", model.FinalEvalLoss, model.StateRoot.Short())
			}
			if model.Rounds != real.Rounds || model.Tokens != real.Tokens || model.PaidUzen != real.PaidUzen ||
				model.SlashedUzen != 0 {
				t.Errorf("%d rounds, %d tokens, paid %d, slashed %d; the job has %d, %d and %d", model.Rounds, model.Tokens,
					model.PaidUzen, model.SlashedUzen, real.Rounds, real.Tokens, real.PaidUzen)
			}
			for what, x := range map[string]struct{ model, real, away float64 }{
				"seconds":     {model.Seconds, real.Seconds, 0.05},
				"utilisation": {model.Utilisation, real.Utilisation, cmp.Or(c.drawn, 0.05)},
				"bytes":       {float64(model.BytesDown), float64(real.BytesDown), c.away},
				"job":         {float64(model.Parties[0].JobBytes), float64(real.Parties[0].JobBytes), 1e-3},
			} {
				if away := math.Abs(x.model/x.real - 1); !(away <= x.away) {
					t.Errorf("%s: %v, of the job %v", what, x.model, x.real)
				}
			}
		})
	}
}

// A member that breaks the rules of a modelled job has to leave it, and no other does; the report has no value of the
// training that was not done.
func TestModelledLiars(t *testing.T) {
	_, model := play(t, jobtest.Small(t), map[string]string{"worker-1": "skips"})
	for _, p := range model.Parties {
		if liar := p.Name == "worker-1"; liar != (p.SlashedUzen > 0) || liar != (p.Out != "") {
			t.Errorf("%+v", p)
		}
	}
	dir := t.TempDir()
	if err := model.Write(dir); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{rundir.FileReport: true, fileSimulation: true, fileRounds: true,
		"bytes.svg": true, rundir.FileMetrics: false, rundir.FileLineage: false, "loss.svg": false} {
		if _, err := os.Stat(filepath.Join(dir, name)); want != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Operations cost what others cost, if there is a price for that.
func TestPriceOfAStandIn(t *testing.T) {
	for _, x := range []struct{ operations, others, price uint64 }{
		{1000, 1000, market.DefaultPrice}, {1000, 500, market.DefaultPrice / 2}, {1e8, 1e16, 1e8 * market.DefaultPrice},
		{1e6, 1e17, 0},
	} {
		if got := priceFor(x.operations, x.others); got != x.price {
			t.Errorf("%d operations for %d: %d, want %d", x.operations, x.others, got, x.price)
		}
	}
}
