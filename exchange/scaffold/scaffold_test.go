package scaffold

import (
	"math"
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

func of(x float64) []*tensor.Tensor {
	return []*tensor.Tensor{tensor.FromF32([]float32{float32(x)}, 1)}
}

func value(t []*tensor.Tensor) float64 { return float64(t[0].F32()[0]) }

// Owners with parabolas of other widths and other middles find the least sum with variates, and another place without.
// The sum of the coordinator is that of the owners, also where some are missing in rounds.
func TestOwnersFindTheirCommonLeast(t *testing.T) {
	width, middle := []float64{1, 4, 0.5}, []float64{-3, 1, 5}
	const steps, rate, rounds = 10, 0.1, 400
	above, below := 0.0, 0.0
	for i, w := range width {
		above, below = above+w*middle[i], below+w
	}
	for _, c := range []struct {
		steered, missing bool
		off              float64 // from the least
	}{{true, false, 1e-4}, {true, true, 0.02}, {false, false, 0}} {
		x, sum, own := 10.0, of(0), [][]*tensor.Tensor{of(0), of(0), of(0)}
		for r := range rounds {
			mean := Mean(sum, len(own))
			moved, n := 0.0, 0
			for i := range own {
				if c.missing && r%5 == i {
					continue
				}
				y := x
				steer := 0.0
				if c.steered {
					steer = value(Steer(mean, own[i]))
				}
				for range steps {
					y -= rate * (width[i]*(y-middle[i]) + steer)
				}
				own[i] = Next(own[i], mean, of(x-y), steps*rate)
				moved, n = moved+x-y, n+1
			}
			sum = Sum(sum, mean, of(moved/float64(n)), n, steps*rate)
			x -= moved / float64(n)
			all := 0.0
			for _, v := range own {
				all += value(v)
			}
			if math.Abs(all-value(sum)) > 0.01 { // both are rounded to float32
				t.Fatalf("round %d: the variates are %v in all, and their sum %v", r, all, value(sum))
			}
		}
		switch off := math.Abs(x - above/below); {
		case c.steered && off > c.off:
			t.Errorf("%+v: %v away from the least", c, off)
		case !c.steered && off < 0.1:
			t.Errorf("%+v: %v away from the least: the test shows nothing", c, off)
		}
	}
}

// The rates of a round are those of its steps.
func TestRates(t *testing.T) {
	s := &train.Spec{Rounds: 3, Steps: 4, Rate: train.Rate{Peak: 0.5, Floor: 1, Kind: train.Constant}}
	if got := Rates(s, 1); got != 2 {
		t.Errorf("4 steps with the rate 0.5 have %v", got)
	}
	if got := value(Mean(of(3), 0)); got != 3 {
		t.Errorf("the mean of no variates is %v", got)
	}
}
