package arena

import "testing"

// Of 1,000 duels of equal models 3 to 7 % have a verdict, and a model that is 0.01 nats better wins 90 % or more on
// 2,000 examples: the bars of starling bench arena --quick.
func TestDuelsHaveTheirErrors(t *testing.T) {
	r, err := Measure(t.Context(), Options{Null: 1000, Duels: 200, Progress: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range r.Bars {
		t.Logf("%s: %v", b.Name, b.Value)
		if !b.Holds {
			t.Errorf("%s: %v, the bar is %v", b.Name, b.Value, b.Bar)
		}
	}
}
