package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Times follow from rates where they are not measured.
func TestByRate(t *testing.T) {
	for _, c := range []struct {
		blocks []uint32
		rates  []uint64
		want   []uint32
	}{
		{[]uint32{0, 0, 0, 0}, []uint64{5, 10, 10, 20}, []uint32{8192, 4096, 4096, 2048}},
		{[]uint32{0, 0, 0}, []uint64{0, 0, 0}, []uint32{0, 0, 0}},
		{[]uint32{300, 0, 0}, []uint64{0, 10, 10}, []uint32{300, 4096, 4096}}, // no rate has a time
		{[]uint32{300, 0, 0, 0}, []uint64{10, 20, 5, 0}, []uint32{300, 150, 600, 0}},
		{[]uint32{300, 900, 310, 0}, []uint64{10, 10, 10, 20}, []uint32{300, 900, 310, 155}}, // one works slowly
		{[]uint32{0, 0, 0}, []uint64{10, 10, 1000}, []uint32{4096, 4096, 1024}},              // four times the middle
		{[]uint32{0, 0}, []uint64{10, 1000}, []uint32{4096, 1024}},
		{[]uint32{0, 0}, []uint64{1, math.MaxUint64}, []uint32{4096, 1024}},
		{[]uint32{math.MaxUint32, 0}, []uint64{math.MaxUint64, 1}, []uint32{math.MaxUint32, 1 << 28}},
	} {
		if got := ByRate(c.blocks, c.rates); !slices.Equal(got, c.want) {
			t.Errorf("%v at %v: %v, wanted %v", c.blocks, c.rates, got, c.want)
		}
	}
}

// The first round of machines whose rates say how fast they are is as long as later ones, and half of the machines that
// lie about their rates, by as much as they like, get at most four times the units of a usual one.
func TestFirstRoundByRate(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 66))
	for range 300 {
		n, units := 3+r.IntN(9), uint32(24+r.IntN(64))
		blocks, rates, none := make([]uint32, n), make([]uint64, n), make([]uint32, n)
		for i := range blocks {
			speed := 100 + r.IntN(300)
			blocks[i], rates[i] = uint32(1_000_000/speed), uint64(speed)*1_000_000
		}
		span := func(shares []uint32) (longest uint64) {
			for i, k := range shares {
				longest = max(longest, uint64(k)*uint64(blocks[i]))
			}
			return longest
		}
		byRate, right := SplitBySpeed(units, ByRate(none, rates)), SplitBySpeed(units, blocks)
		if a, b := span(byRate), span(right); a > b+uint64(slices.Max(blocks)) {
			t.Errorf("%d units by rates: %v, by speeds %v", units, byRate, right)
		}
		for i := range n / 2 { // the honest are the middle one and above
			rates[i] = math.MaxUint64 >> r.IntN(30)
		}
		times := ByRate(none, rates)
		honest := slices.Max(rates[n/2:])
		for i := range n / 2 {
			if k := slices.Index(rates[n/2:], honest) + n/2; times[i] < times[k]/mostRate {
				t.Errorf("rates %v: times %v", rates, times)
			}
		}
	}
}
