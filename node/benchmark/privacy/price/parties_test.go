package price

import "testing"

// Three parties give the scores of the model, within the bound.
func TestAnswers(t *testing.T) {
	a, err := Answers(t.Context(), 3, t.TempDir())
	if err != nil || len(a) != 2 {
		t.Fatal(err)
	}
	if x := a[1]; x.Away == 0 || x.Away > x.Bound || x.Sent != 3*2*8*64 || x.Received != 3*2*8*10 {
		t.Errorf("%+v", x)
	}
	t.Logf("%+v", a)
}
