package outer

import (
	"math"
	"testing"
)

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i, w := range want {
		if !(math.Abs(float64(got[i]-w)) <= 1e-6*(1+math.Abs(float64(w)))) {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

func TestOptimizersByHand(t *testing.T) {
	for _, c := range []struct {
		name      string
		o         Optimizer
		d         []float32 // one parameter, from 10, moved twice
		p         []float32
		state     [][]float32
		stateWant [][]float32
	}{
		{"sgd", GradientDescent{0.5}, []float32{1, 2}, []float32{9.5, 8.5}, nil, nil},
		// u: 1, then 0.5*1 + 2 = 2.5. Steps: 1 + 0.5*1, then 2 + 0.5*2.5.
		{"nesterov", Momentum{1, 0.5}, []float32{1, 2}, []float32{8.5, 5.25}, [][]float32{{0}}, [][]float32{{2.5}}},
		// m: 1, then 0.5. v: 1, then 0.75. Steps: 1/(1+1), then 0.5/(0.8660254+1).
		{"adam", Adaptive{1, 0.5, 0.75, 1, false}, []float32{2, 0}, []float32{9.5, 9.5 - 0.5/1.8660254},
			[][]float32{{0}, {0}}, [][]float32{{0.5}, {0.75}}},
		// v grows from 0 by 0.25*4, and falls by 0.25*0: it stays.
		{"yogi", Adaptive{1, 0.5, 0.75, 1, true}, []float32{2, 0}, []float32{9.5, 9.25}, [][]float32{{0}, {0}},
			[][]float32{{0.5}, {1}}},
		// v: 1, then less 0.25*0.25.
		{"yogi falls", Adaptive{1, 0, 0.75, 0, true}, []float32{2, 0.5}, []float32{8, 8 - 0.5/0.9682458},
			[][]float32{{0}, {0}}, [][]float32{{0.5}, {0.9375}}},
	} {
		if c.o.State() != len(c.state) {
			t.Errorf("%s: %d moments, want %d", c.name, c.o.State(), len(c.state))
		}
		p := []float32{10}
		for i, d := range c.d {
			step := []float32{d}
			c.o.Step(p, step, c.state)
			near(t, c.name, p, c.p[i:i+1])
			if step[0] != d {
				t.Errorf("%s changed the pseudo-gradient", c.name)
			}
		}
		for k, want := range c.stateWant {
			near(t, c.name+" state", c.state[k], want)
		}
	}
}

func TestLocalStepsFollowSpeed(t *testing.T) {
	// Seconds a step of 0.58, 0.75, 1.51 and 3.33: speeds relative to the first.
	for speed, want := range map[uint64]int{1724: 20, 1333: 15, 662: 7, 300: 3, 1: 1, 0: 1, 9999: 20} {
		if got := LocalSteps(20, speed, 1724); got != want {
			t.Errorf("speed %d: %d steps, want %d", speed, got, want)
		}
	}
}
