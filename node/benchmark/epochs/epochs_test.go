package epochs

import "testing"

// Keys leave the function of a trained model, and stages of two of them predict ten times worse together.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), 12, 150, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Keys != 12 || r.Difference > mostDifferent || r.Keyed > 1.001*r.Perplexity ||
		min(r.Stitched, r.OneStage) < leastStitched*r.Perplexity {
		t.Errorf("%+v", r)
	}
}
