package node

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/starling-network/starling/node/benchmark/reinforce"
)

// A model that learns for some steps is measured as a whole.
func TestBenchReinforce(t *testing.T) {
	onlyLong(t)
	o := reinforce.Options{Seeds: 1, Steps: 5, Rounds: 2, Played: 6, Threads: 1, Progress: func(string) {},
		Parts: filepath.Join(t.TempDir(), "parts.json")}
	r, err := reinforce.Measure(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := reinforce.Measure(t.Context(), o) // with every number from the file
	if err != nil || again.Runs[0] != r.Runs[0] || !slices.Equal(again.Ages, r.Ages) {
		t.Errorf("from the file of parts: %+v, measured %+v, %v", again, r, err)
	}
	o.Steps = 6
	if _, err := reinforce.Measure(t.Context(), o); err == nil {
		t.Error("the file of other steps is taken")
	}
	if run := r.Runs[0]; run.Before < 0.2 || run.Steps != 5 || run.After <= 0 || !r.Bars[4].Holds {
		t.Errorf("%+v", r)
	}
}
