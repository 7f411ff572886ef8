package privacy

import "testing"

// TestBarsHold plays small sums, as starling bench privacy --quick does, in which every bar has to hold.
func TestBarsHold(t *testing.T) {
	r, err := Measure(t.Context(), Options{Entries: 2000, Samples: 100_000, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range r.Bars {
		if !b.Holds {
			t.Errorf("%s: %v, the bar is %v", b.Name, b.Value, b.Bar)
		}
	}
	for _, s := range r.Sums {
		if !s.Exact || s.Error > 1e-6 {
			t.Errorf("%+v", s)
		}
	}
}
