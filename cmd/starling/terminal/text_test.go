package terminal

import (
	"math"
	"testing"
)

func TestSketch(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{nil, ""}, {[]float64{3}, "▁"}, {[]float64{2, 2}, "▁▁"}, {[]float64{0, 7, math.NaN(), 3.5}, "▁█ ▅"},
		{[]float64{8, 7, 6, 5, 4, 3, 2, 1}, "█▆▄▂"},
	} {
		if got := Sketch(c.values, 4); got != c.want {
			t.Errorf("%v: %q, want %q", c.values, got, c.want)
		}
	}
	if got := Printable("a\x1b[2Jb"); got != "a [2Jb" {
		t.Errorf("%q", got)
	}
}
