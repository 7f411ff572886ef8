package discrete

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/exchange/prg"
)

// TestDistribution draws 10^6 samples and compares their counts with the probabilities (chi-square, up to the 0.9999
// quantile in the normal approximation of Wilson and Hilferty).
func TestDistribution(t *testing.T) {
	for _, scale := range []uint64{1, 3, 10} {
		values := make([]uint32, 1_000_000)
		if err := Add(values, scale, prg.Key{byte(scale)}); err != nil {
			t.Fatal(err)
		}
		count := map[int32]float64{}
		for _, v := range values {
			count[int32(v)]++
		}
		weight := func(x int) float64 { return math.Exp(-float64(x*x) / float64(2*scale*scale)) }
		total := 0.0
		for x := -1000; x <= 1000; x++ {
			total += weight(x)
		}
		chi, cells, rest := 0.0, 0.0, float64(len(values))
		for x := -1000; x <= 1000; x++ {
			if want := weight(x) / total * float64(len(values)); want >= 10 {
				chi += (count[int32(x)] - want) * (count[int32(x)] - want) / want
				cells, rest = cells+1, rest-count[int32(x)]
			}
		}
		free := cells - 1
		if limit := free * math.Pow(1-2/(9*free)+3.72*math.Sqrt(2/(9*free)), 3); chi > limit || rest > 200 {
			t.Errorf("scale %d: chi-square %.1f of %.0f cells, limit %.1f; %.0f in the tails", scale, chi, cells, limit, rest)
		}
	}
}

// TestLargeScale has the variance of the grid's largest noise.
func TestLargeScale(t *testing.T) {
	values := make([]uint32, 100_000)
	if err := Add(values, MaxScale, prg.Key{1}); err != nil {
		t.Fatal(err)
	}
	var square, sum float64
	for _, v := range values {
		x := float64(int32(v)) / MaxScale
		square, sum = square+x*x, sum+x
	}
	if n := float64(len(values)); math.Abs(square/n-1) > 0.02 || math.Abs(sum/n) > 0.015 {
		t.Errorf("variance %.4f, mean %.4f", square/n, sum/n)
	}
}

func TestSameKeySameNoise(t *testing.T) {
	a, b := make([]uint32, 100), make([]uint32, 100)
	if Add(a, 50, prg.Key{1}) != nil || Add(b, 50, prg.Key{1}) != nil || !slices.Equal(a, b) {
		t.Error("the same key has other samples")
	}
	if Add(a, 0, prg.Key{}) == nil || Add(a, MaxScale+1, prg.Key{}) == nil {
		t.Error("a scale out of range is taken")
	}
}
