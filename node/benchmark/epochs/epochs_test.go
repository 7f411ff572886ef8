package epochs

import "testing"

// Keys leave the function of a trained model, and stages of two of them predict worse together.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), 12, 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Keys != 12 || r.Difference > mostDifferent || r.Keyed > 1.001*r.Perplexity || r.Stitched < 1.3*r.Perplexity {
		t.Errorf("%+v", r)
	}
}
