package sums

import "testing"

// Each way gives the plain sum, and what is sent is what the way adds to the vector.
func TestPrice(t *testing.T) {
	rows, err := Measure(t.Context(), Size{Owners: 5, Gone: 1, Weights: 3000}, func(string) {})
	if err != nil || len(rows) != 3 {
		t.Fatal(err)
	}
	for i, least := range []int{4 * 3001, 4 * 3001, 6*3001 + 4*2048} {
		r := rows[i]
		if !r.Exact || r.Summed != 4 || r.Sent < least || r.Sent > least+4096 || r.Owner < 0 || r.Server < 0 {
			t.Errorf("%+v", r)
		}
	}
}
