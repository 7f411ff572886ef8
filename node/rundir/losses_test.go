package rundir

import "testing"

// A loss that is far above the first one rose, also where the first is below 0, as that of rewards may be.
func TestRise(t *testing.T) {
	for _, c := range []struct {
		first, last float64
		rose        bool
	}{{4, 5.9, false}, {4, 6.1, true}, {0.5, 1.4, false}, {0.5, 1.6, true}, {-10, -8.9, false}, {-499, -497, false},
		{-10, -4.9, true}, {-1, 0.1, true}} {
		at := func(x float64) Metric { return Metric{Kind: "round", EvalLoss: &x} }
		if got := Rise([]Metric{at(c.first), at(c.last)}); (got != "") != c.rose {
			t.Errorf("%v after %v: %q", c.last, c.first, got)
		}
	}
}
