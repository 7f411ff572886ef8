package alliance

import "testing"

// Members that flip labels, hand in noise or copies earn little, and a third of a panel moves no score.
func TestCommittee(t *testing.T) {
	o, err := Measure(t.Context(), 0.1, Size{Rounds: 30}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", o)
	for _, e := range o.Earned {
		if (e.Kind == Flips || e.Kind == Random || e.Kind == Copies) && e.Paid > 0.2 {
			t.Errorf("%+v", e)
		}
	}
	if o.Moved.Scores > 0 || o.After > o.Before {
		t.Errorf("%+v", o)
	}
}
