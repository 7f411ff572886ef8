package people

import (
	"errors"
	"flag"
	"fmt"
	"testing"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/busy"
)

var long = flag.Bool("long", false, "play simulated weeks")

// A release reaches twenty nodes while they train: no deadline is missed, no stake is slashed, and the model is that of
// a run alone.
func TestAReleaseReachesAll(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	u, err := upgrade(t.Context(), 0, rollout, 12)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%+v", u); spoilt([]Upgrade{u}) > 0 {
		t.Errorf("%+v", u)
	}
}

// The median of the estimate for a machine that joins a network is within a quarter of its pay in the rest of the week.
// Networks of three speeds and of three classes are played here; docs/performance.md has those of drawn speeds.
func TestEstimatesHold(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	holds := func(name string, play func(t *testing.T) (Income, error)) {
		t.Run(name, func(t *testing.T) {
			in, err := play(t)
			if err != nil {
				t.Fatal(err)
			}
			if t.Logf("%+v", in); in.Off > 0.25 || in.Off < -0.25 {
				t.Errorf("%+v", in)
			}
		})
	}
	for i, rate := range []uint64{pace / 2, pace, 2 * pace} {
		holds(fmt.Sprint("speed ", i), func(t *testing.T) (Income, error) {
			return income(t.Context(), 0, rate, 2*day, 7*day)
		})
	}
	for _, m := range joining {
		holds(fmt.Sprint("class of ", m.memory>>10, " GiB"), func(t *testing.T) (Income, error) {
			return incomeOfClass(t.Context(), 0, m, 2*day, 7*day)
		})
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

// Machines that are due more than they do compute nine tenths of the time, whatever their class of work is.
func TestBusyInEachClass(t *testing.T) {
	if !*long {
		t.Skip("with -long")
	}
	for _, c := range []busy.Class{busy.Verification, busy.Generation} {
		b, err := busyIn(t.Context(), c, 0, day)
		if err != nil {
			t.Fatal(err)
		}
		if t.Logf("%+v", b); b.Share < 0.9 || b.Share > 1 {
			t.Errorf("%+v", b)
		}
	}
}
