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

// Settings that make a job fit take less memory than the job, and are named only if it then fits.
func TestFitting(t *testing.T) {
	j := jobtest.Small(t)
	whole, err := memoryWith(j, nil)
	if err != nil {
		t.Fatal(err)
	}
	set, need, ok := Fitting(j, whole-1)
	if !ok || need >= whole || len(set) == 0 {
		t.Fatalf("%v takes %d of %d, %v", set, need, whole, ok)
	}
	if again, err := memoryWith(j, set); err != nil || again != need {
		t.Errorf("%d with the settings, told %d: %v", again, need, err)
	}
	if set, _, ok := Fitting(j, 1); ok {
		t.Errorf("%v fits into one byte", set)
	}
}
