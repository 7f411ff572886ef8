package privacy

import (
	"flag"
	"os"
	"testing"

	"github.com/starling-network/starling/node/benchmark/privacy/learner"
)

var long = flag.Bool("long", os.Getenv("STARLING_LONG") != "",
	"make a small measurement of everything, as .ci/run does")

// TestBarsHold plays small sums, as starling bench privacy --quick does, in which every bar has to hold.
func TestBarsHold(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	o := Quick
	o.Entries, o.Images, o.Progress = 2000, 2, func(string) {}
	o.Curve = learner.Size{Owners: 2, Examples: 60, Rounds: 1}
	r, err := Measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range r.Bars {
		if !b.Holds {
			t.Errorf("%s: %v, the bar is %v", b.Name, b.Value, b.Bar)
		}
	}
	t.Logf("%+v\n%+v\n%+v\n%+v\n%+v", r.Inversion, r.Members, r.Curve, r.Traffic, r.Bars)
	if r.Members[0].Area <= unrecognised || r.Traffic.Rounds == 0 || len(r.Curve) != 8 {
		t.Errorf("the attacks do not work: %+v, %+v", r.Members, r.Traffic)
	}
	for _, s := range r.Sums {
		if !s.Exact || s.Error > 1e-6 {
			t.Errorf("%+v", s)
		}
	}
}
