package adapter

import "testing"

// A small measurement has every figure, and proofs of its bytes hold.
func TestMeasure(t *testing.T) {
	r, err := Measure(t.Context(), Options{Rank: 2, In: 8, Out: 6, Tokens: 2, Times: 2, Progress: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Weights != 28 || r.Constraints < 28 || r.Constraints > 40 || !(r.Prove > 0) || !(r.Verify > 0) ||
		r.MemoryMiB < 1 || r.ProofBytes != 192 || len(r.Bars) != 4 {
		t.Errorf("%+v", r)
	}
	wrong := Options{Rank: 2, In: 1, Out: 6, Tokens: 2, Times: 1, Progress: func(string) {}}
	if _, err := Measure(t.Context(), wrong); err == nil {
		t.Error("a layer with one input")
	}
}
