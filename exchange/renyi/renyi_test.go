package renyi

import (
	"math"
	"testing"
)

// TestVectors are published figures and those of an independent accountant: Abadi et al. 2016 have 1.26 for the first,
// the tutorial of TensorFlow Privacy 3.01 for the third.
func TestVectors(t *testing.T) {
	for _, c := range []struct{ q, sigma, steps, delta, classic, tight float64 }{
		{0.01, 4, 10000, 1e-5, 1.2586, 1.0355}, {0.01, 4, 40000, 1e-5, 2.5759, 2.2129},
		{256. / 60000, 1.1, 14100, 1e-5, 3.0133, 2.6007}, {0.01, 1, 1000, 1e-5, 2.5383, 2.1078},
		{1, 10, 100, 1e-5, 5.3026, 4.7527}, {0.02, 0.8, 500, 1e-6, 6.9143, 6.1645},
	} {
		l := Gaussian(c.q, c.sigma).Times(c.steps)
		if got := l.Classic(c.delta); math.Abs(got-c.classic) > 1e-4 {
			t.Errorf("%v: classic %.5f", c, got)
		}
		if got := l.Epsilon(c.delta); math.Abs(got-c.tight) > 1e-4 {
			t.Errorf("%v: tight %.5f", c, got)
		}
	}
	l := Gaussian(0.01, 4)
	for order, want := range map[int]float64{2: 6.449425e-6, 8: 2.589912e-5, 32: 1.0526361e-4} {
		if got := l[order-2]; math.Abs(got/want-1) > 1e-6 {
			t.Errorf("order %d: %v, wanted %v", order, got, want)
		}
	}
}

func TestComposition(t *testing.T) {
	a := Gaussian(1, 5)
	if (Loss{}).Epsilon(1e-5) != 0 || Gaussian(0, 1) != (Loss{}) {
		t.Error("losses do not add up")
	}
	if twice, once := a.Times(2).Epsilon(1e-5), a.Epsilon(1e-5); twice >= 2*once || twice <= once {
		t.Errorf("two uses cost %v, one %v", twice, once)
	}
}

// Noise near zero bounds nothing: its loss is infinite, and never NaN, which every budget would pass.
func TestNoiseNearZero(t *testing.T) {
	for _, sigma := range []float64{0, 1e-300, 1e-155, 1e-154, 1e-100} {
		for _, q := range []float64{1e-300, 0.01, 0.5, 1} {
			l := Gaussian(q, sigma)
			if e := l.Times(3).Epsilon(1e-5); !(e > 1e6) {
				t.Errorf("epsilon is %v of a rate of %v and noise of %v", e, q, sigma)
			}
			if l.Times(0) != (Loss{}) {
				t.Errorf("no use of noise %v at rate %v has a loss", sigma, q)
			}
		}
	}
}
