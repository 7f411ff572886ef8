package sealed

import "testing"

// Units read a part of the shards, and nothing of the data is in what others see.
func TestMeasure(t *testing.T) {
	c, err := Measure(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%+v", c); c.Found > 0 || c.Windows < searched<<14 || c.Read == 0 || c.Read >= 2*c.Shards || c.Part <= 0 {
		t.Errorf("%+v", c)
	}
}
