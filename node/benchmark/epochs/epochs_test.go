package epochs

import "testing"

// Keys leave the function of a trained model, and parts of two of them are of no use together.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), 12, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range r.Bars() {
		if !b.Holds {
			t.Errorf("%+v", b)
		}
	}
	t.Logf("%+v", r)
}
