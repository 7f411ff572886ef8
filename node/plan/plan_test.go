package plan

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/prepare"
)

// The time of a run has all parts, of which evaluations and audits follow from the job.
func TestTimeHasAllParts(t *testing.T) {
	p, err := PlanJob(t.Context(), jobtest.Small(t), "")
	if err != nil {
		t.Fatal(err)
	}
	w := p.Work
	if w == nil || w.Units <= 0 || w.Audits <= 0 || w.Evaluation <= 0 || w.Bytes <= 0 || w.Chain <= 0 {
		t.Fatalf("parts: %+v", w)
	}
	if p.Seconds != w.Seconds() || p.Seconds <= w.Units+w.Audits+w.Evaluation {
		t.Errorf("%v seconds of %+v", p.Seconds, w)
	}
}

func TestExpectedAudits(t *testing.T) {
	for _, c := range []struct {
		floor  uint32
		rounds int
		want   float64
	}{{0, 10, 0}, {1e6, 10, 10}, {1e5, 1, 1}, {1e5, 2, 1.5}, {1e5, 3, 2}} {
		if got := audits(c.floor, c.rounds); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("floor %d, %d rounds: %v audits of a unit, want %v", c.floor, c.rounds, got, c.want)
		}
	}
	if long := audits(1e5, 1000); long < 100 || long > 115 {
		t.Errorf("%v audits in 1000 rounds at a tenth", long)
	}
}

func TestEvaluations(t *testing.T) {
	for set, want := range map[string]int{"eval.every_steps=4": -1, "eval.every_steps=1000000": 2} {
		j := jobtest.Small(t)
		j, err := job.Parse(j.Source, j.Path, append(slices.Clone(j.Overrides), set)...)
		if err != nil {
			t.Fatal(err)
		}
		b, err := prepare.Outline(j)
		if err != nil {
			t.Fatal(err)
		}
		if want < 0 {
			want = int(b.Spec.Rounds) + 1
		}
		if got := evaluations(b); got != want {
			t.Errorf("%s: %d evaluations, want %d", set, got, want)
		}
	}
}

// An evaluation of a swarm measures each of its models.
func TestEvaluationOfASwarm(t *testing.T) {
	b, err := prepare.Outline(jobtest.Small(t))
	if err != nil {
		t.Fatal(err)
	}
	one := evaluated(b)
	b.Spec.Exchange.Policies = 3
	if got := evaluated(b); one == 0 || got != 3*one {
		t.Errorf("%d batches of three models, %d of one", got, one)
	}
}

// Settings that make a job fit take less memory or disk than the job, and are named only if it then fits.
func TestFitting(t *testing.T) {
	j := jobtest.Small(t)
	const plenty = 1 << 40
	whole, err := needs(j, nil, Room{plenty, plenty})
	if err != nil {
		t.Fatal(err)
	}
	for name, free := range map[string]Room{"memory": {whole.Memory - 1, plenty}} {
		set, need, ok := Fitting(j, free)
		if !ok || need.Memory > free.Memory || need.Disk > free.Disk || len(set) == 0 {
			t.Fatalf("%s: %v takes %+v of %+v, %v", name, set, need, whole, ok)
		}
		if again, err := needs(j, set, free); err != nil || again != need {
			t.Errorf("%s: %+v with the settings, told %+v: %v", name, again, need, err)
		}
	}
	if set, _, ok := Fitting(j, Room{1, plenty}); ok {
		t.Errorf("%v fits into one byte of memory", set)
	}
	if set, _, ok := Fitting(j, Room{plenty, 1}); ok {
		t.Errorf("%v fits into one byte of disk", set)
	}
}

// TestFittingOnTheDisk: of a large job that carries the state of its optimizer, smaller state and fewer rounds that it
// lasts take less of the disk.
func TestFittingOnTheDisk(t *testing.T) {
	j, err := job.Load(jobtest.Small(t).Path, "model.config.n_layer=2", "model.config.n_head=4",
		"model.config.n_embd=512", "strategy.optimizer_state_rounds=2", "strategy.sync_steps=2")
	if err != nil {
		t.Fatal(err)
	}
	whole, err := needs(j, nil, Room{1, 1 << 40}) // all that is put aside has to be on the disk
	if err != nil {
		t.Fatal(err)
	}
	// Smaller states are below memory.LeastAside, so they lie in memory; there is less of it than lies aside.
	free := Room{Memory: whole.Memory * 6 / 5, Disk: whole.Disk * 9 / 10}
	set, need, ok := Fitting(j, free)
	if !ok || need.Disk > free.Disk || need.Memory > free.Memory {
		t.Fatalf("%v takes %+v of %+v, %v", set, need, free, ok)
	}
	if again, err := needs(j, set, free); err != nil || again != need || len(set) == 0 {
		t.Errorf("%+v with %v, told %+v: %v", again, set, need, err)
	}
}

// A run is expected to cost its work, and the audits of workers that no run has seen: less than with every unit
// audited, and as much where every unit is.
func TestExpectedCost(t *testing.T) {
	for set, part := range map[string]float64{
		"strategy.verification={mode: none}":                      0,
		"strategy.verification={mode: spot_check, fraction: 0.1}": audits(1e5, 3) / 3,
		"strategy.verification={mode: spot_check, fraction: 1}":   1,
	} {
		j := jobtest.Small(t)
		j, err := job.Parse(j.Source, j.Path, append(slices.Clone(j.Overrides), set)...)
		if err != nil {
			t.Fatal(err)
		}
		b, err := prepare.Outline(j)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Of(b)
		if err != nil {
			t.Fatal(err)
		}
		work := float64(p.Most)
		if part > 0 {
			work /= 2 // the other half are audits of every unit, at the same price
		}
		if want := work * (1 + part); math.Abs(float64(p.Expected)-want) > 2 {
			t.Errorf("%s: %d of %d, want %.0f", set, p.Expected, p.Most, want)
		}
	}
}
