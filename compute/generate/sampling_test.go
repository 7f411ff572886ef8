package generate

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/philox"
)

func someLogits(n int, seed uint64) []float32 {
	x := make([]float32, n)
	philox.NormalTo(x, seed, 0)
	for i := range x {
		x[i] = float32(math.Round(float64(x[i])*8)) / 4 // with ties
	}
	return x
}

// slowly is what Pick may draw, by sorting.
func slowly(logits []float32, s Sampling) []int32 {
	ids := make([]int32, len(logits))
	weight := func(id int32) float64 { return math.Exp(float64(logits[id]) / s.Temperature) }
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortStableFunc(ids, func(a, b int32) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	if s.TopK > 0 && s.TopK < len(ids) {
		ids = ids[:s.TopK]
	}
	if s.TopP > 0 && s.TopP < 1 {
		sum, reached := 0.0, 0.0
		for _, id := range ids {
			sum += weight(id)
		}
		for i, id := range ids {
			if reached += weight(id); reached >= s.TopP*sum*(1+1e-12) {
				return ids[:i+1]
			}
		}
	}
	return ids
}

func TestPickDrawsFromTheLikeliest(t *testing.T) {
	for seed := range uint64(40) {
		logits := someLogits(3+int(seed)*5, seed)
		for _, s := range []Sampling{
			{Temperature: 1, TopK: 3}, {Temperature: 0.5, TopP: 0.7}, {Temperature: 2, TopK: 7, TopP: 0.4},
			{Temperature: 1, TopP: 1e-9}, {Temperature: 1},
		} {
			allowed, drawn := slowly(logits, s), map[int32]int{}
			s.Seed = seed
			for n := range uint64(200) {
				id := s.Pick(logits, n)
				drawn[id]++
				if !slices.Contains(allowed, id) {
					t.Fatalf("%+v drew %d of %v, allowed are %v", s, id, logits, allowed)
				}
			}
			if len(allowed) > 1 && len(drawn) == 1 && s.TopP < 0.5 && s.TopP > 1e-3 {
				t.Errorf("%+v: 200 draws among %d candidates gave one", s, len(allowed))
			}
		}
	}
}

// TestPickFollowsTheProbabilities draws often and compares the shares, within five standard deviations.
func TestPickFollowsTheProbabilities(t *testing.T) {
	logits, s := []float32{0, 1, 2, -1}, Sampling{Temperature: 0.8, Seed: 5}
	const draws = 20000
	count := make([]float64, len(logits))
	for n := range uint64(draws) {
		count[s.Pick(logits, n)]++
	}
	sum := 0.0
	for _, x := range logits {
		sum += math.Exp(float64(x) / 0.8)
	}
	for i, x := range logits {
		p := math.Exp(float64(x)/0.8) / sum
		if d := math.Abs(count[i]/draws - p); d > 5*math.Sqrt(p*(1-p)/draws) {
			t.Errorf("token %d was drawn in %.4f of the cases, its probability is %.4f", i, count[i]/draws, p)
		}
	}
}

func TestPickWithoutTemperatureTakesTheFirstMaximum(t *testing.T) {
	logits := []float32{-1, 3, 2, 3}
	for _, s := range []Sampling{{}, {Temperature: 1, TopK: 1}, {Temperature: 1e-300}, {Temperature: 1, TopP: 1e-12}} {
		want := []int32{1}
		if s.Temperature == 1e-300 {
			want = []int32{1, 3} // equally likely
		}
		for n := range uint64(20) {
			if got := s.Pick(logits, n); !slices.Contains(want, got) {
				t.Errorf("%+v picked %d", s, got)
			}
		}
	}
}

func TestSamplingCheck(t *testing.T) {
	for _, s := range []Sampling{{Temperature: -1}, {Temperature: math.NaN()}, {Temperature: math.Inf(1)}, {TopK: -1},
		{TopP: 1.1}, {TopP: math.NaN()}} {
		if err := s.Check(); !errors.Is(err, ErrSampling) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if err := (Sampling{Temperature: 0.7, TopK: 40, TopP: 0.95}).Check(); err != nil {
		t.Error(err)
	}
}
