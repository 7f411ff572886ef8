package schedule

import (
	"slices"
	"testing"
)

func TestDeadlineAdapts(t *testing.T) {
	same := func(n int, w int64) []int64 { return slices.Repeat([]int64{w}, n) }
	for name, c := range map[string]struct {
		seen []int64
		want int64
	}{
		"nothing":    {nil, 50},
		"few":        {same(7, 3), 50},
		"few slow":   {same(7, 60), 75},
		"enough":     {same(8, 3), 8},
		"long":       {same(8, 100), 125},
		"spread":     {[]int64{2, 2, 4, 4, 6, 6, 8, 8}, 6 + 4*2 + 5},
		"stragglers": {append(same(20, 3), same(10, 1000)...), 8},
	} {
		if got := Adapt(c.seen, 50); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	var seen []int64
	for i := range int64(100) {
		seen = Remember(seen, i)
	}
	if len(seen) != remembered || seen[0] != 68 {
		t.Errorf("remembers %v", seen)
	}
}
