package audit

import (
	"fmt"
	"slices"
	"testing"

	"github.com/starling-network/starling/canon"
)

func TestRate(t *testing.T) {
	for _, c := range []struct{ floor, passed, want uint32 }{
		{50_000, 0, 1_000_000},
		{50_000, 1, 500_000},
		{50_000, 4, 62_500},
		{50_000, 5, 50_000},
		{50_000, 1 << 30, 50_000},
		{1_000_000, 9, 1_000_000},
		{2_000_000, 9, 1_000_000},
		{1, 40, 1},
		{0, 0, 0},
	} {
		if got := Rate(c.floor, c.passed); got != c.want {
			t.Errorf("Rate(%d, %d) = %d, want %d", c.floor, c.passed, got, c.want)
		}
	}
}

func TestDrawFollowsRate(t *testing.T) {
	beacon := canon.Sum("test", []byte("beacon"))
	const n = 20_000
	for _, rate := range []uint32{0, 50_000, 500_000, Certain} {
		drawn := 0
		for unit := range uint32(n) {
			if Draw(beacon, "job", 3, unit, 0, rate) {
				drawn++
			}
		}
		want := int(uint64(n) * uint64(rate) / Certain)
		if off := drawn - want; off < -300 || off > 300 {
			t.Errorf("rate %d: %d of %d drawn, want about %d", rate, drawn, n, want)
		}
		if (rate == 0 || rate == Certain) && drawn != want {
			t.Errorf("rate %d: %d drawn, want exactly %d", rate, drawn, want)
		}
	}
}

func TestPickIsUniform(t *testing.T) {
	beacon := canon.Sum("test", []byte("beacon"))
	for _, n := range []int{1, 2, 3, 7, 1000} {
		counts := make([]int, n)
		const draws = 20_000
		for i := range uint32(draws) {
			counts[Pick(beacon, "p", "job", i, 0, 0, n)]++
		}
		if least := slices.Min(counts); n <= 7 && least < draws/n*9/10 {
			t.Errorf("n=%d: %v", n, counts)
		}
	}
}

func TestPickDependsOnEverything(t *testing.T) {
	const n = 1 << 40
	beacon := canon.Sum("test")
	picks := map[int]string{}
	for i, got := range []int{
		Pick(beacon, "a", "j", 1, 2, 3, n),
		Pick(canon.Sum("other"), "a", "j", 1, 2, 3, n),
		Pick(beacon, "b", "j", 1, 2, 3, n),
		Pick(beacon, "aj", "", 1, 2, 3, n),
		Pick(beacon, "a", "j", 2, 2, 3, n),
		Pick(beacon, "a", "j", 1, 3, 3, n),
		Pick(beacon, "a", "j", 1, 2, 4, n),
	} {
		if other, ok := picks[got]; ok {
			t.Errorf("pick %d equals pick %s", i, other)
		}
		picks[got] = fmt.Sprint(i)
	}
}
