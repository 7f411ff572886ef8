package pipeline

import "testing"

// Keys leave the function of a trained model, and stages of two of them are of no use together.
func TestRekeyed(t *testing.T) {
	r, err := rekeyed(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range r.bars() {
		if !b.Holds {
			t.Errorf("%+v", b)
		}
	}
	t.Logf("%+v", r)
}
