package people

import (
	"errors"
	"flag"
	"testing"

	"github.com/starling-network/starling/node/benchmark"
)

var long = flag.Bool("long", false, "play simulated weeks")

// The median of the estimate for a machine that joins workers of three speeds is within a quarter of its pay in the
// rest of the week. For workers of drawn speeds it is not always: docs/performance.md.
func TestEstimatesHold(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	for _, rate := range []uint64{pace / 2, pace, 2 * pace} {
		in, err := income(t.Context(), 0, rate, 2*day, 7*day)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", in)
		if in.Off > 0.25 || in.Off < -0.25 {
			t.Errorf("%+v", in)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Days: 2, Seeds: 1, Machines: 1}, {Days: 7, Machines: 1},
		{Days: 7, Seeds: 1}} {
		if _, err := Measure(t.Context(), o); !errors.Is(err, benchmark.ErrOption) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}
