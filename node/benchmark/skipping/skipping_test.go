package skipping

import (
	"slices"
	"testing"
)

// A step is shorter where stages are left out, by more than the bar, and models of both kinds are trained.
func TestMeasure(t *testing.T) {
	settings = []Setting{{Stages: 4, Microbatches: 4, Share: 0.25, layers: 6}}
	list, err := Measure(t.Context(), 2, 1)
	if err != nil || len(list) != len(settings) {
		t.Fatal(list, err)
	}
	for _, s := range list {
		if slices.Min(s.Faster) < 1.1 || s.Layers < 0.2 || s.Steps != 2 || s.Loss < 1 || s.Gap > 0.1 ||
			len(s.Perplexity) != 3 || len(s.Plain) != 3 || s.Perplexity[1] == s.Perplexity[0] {
			t.Errorf("%+v", s)
		}
	}
	if bars := Bars(list); len(bars) != 1 || !bars[0].Holds {
		t.Errorf("%+v", bars)
	}
}
