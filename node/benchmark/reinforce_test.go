package benchmark_test

import (
	"testing"

	"github.com/starling-network/starling/node/benchmark/reinforce"
)

// A model that learns for some steps is measured as a whole.
func TestReinforce(t *testing.T) {
	if !*long {
		t.Skip("it takes some seconds: -long")
	}
	r, err := reinforce.Measure(t.Context(), reinforce.Options{Seeds: 1, Steps: 5, Rounds: 2, Played: 6, Threads: 1,
		Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if run := r.Runs[0]; run.Before < 0.2 || run.Steps != 5 || run.After <= 0 || !r.Bars[4].Holds {
		t.Errorf("%+v", r)
	}
}
