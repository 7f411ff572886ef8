package kernel

import (
	"slices"
	"testing"
)

func TestParallel(t *testing.T) {
	for _, threads := range []int{-1, 0, 1, 2, 3, 7, 20} {
		for _, n := range []int{0, 1, 2, 7, 100} {
			count := make([]int, n)
			Parallel(threads, n, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					count[i]++
				}
			})
			for i, c := range count {
				if c != 1 {
					t.Errorf("%d threads: element %d of %d is done %d times", threads, i, n, c)
				}
			}
		}
	}
}

func TestSelect(t *testing.T) {
	defer Select("")
	if err := Select("portable"); err != nil || Active() != Portable {
		t.Errorf("Select(portable): %v, %v", err, Active())
	}
	if err := Select("gpu"); err == nil || Active() != Portable {
		t.Errorf("Select(gpu): %v, %v", err, Active())
	}
	for _, p := range all() {
		if err := Select(p.String()); slices.Contains(Paths(), p) != (err == nil) || err == nil && Active() != p {
			t.Errorf("Select(%s): %v, %v; the processor runs %v", p, err, Active(), Paths())
		}
	}
	if err := Select(""); err != nil || Active() != Best() {
		t.Errorf("Select(): %v, %v", err, Active())
	}
}
