package people

import (
	"flag"
	"testing"
)

var long = flag.Bool("long", false, "play simulated weeks")

func TestSplit(t *testing.T) {
	for seed := range uint64(2) {
		s, err := split(t.Context(), seed, 7*day)
		t.Logf("%+v %v", s, err)
	}
}

// The median of the estimate for a machine that joins is within a quarter of what it earns in the rest of the week.
func TestEstimatesHold(t *testing.T) {
	for _, rate := range []uint64{pace / 2, pace, 2 * pace} {
		in, err := income(t.Context(), 1, rate, 2*day, 7*day)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", in)
		if in.Off > 0.25 || in.Off < -0.25 {
			t.Errorf("%+v", in)
		}
	}
}
