package outer

import (
	"slices"
	"testing"
)

// asynchronous trains four workers of the speeds given, each from the parameters that it saw last, and applies what they
// send as it arrives. It returns the share of the loss that is left.
func asynchronous(arrivals int, apply func(layer int, p, d []float32)) float64 {
	seconds := []float64{0.58, 0.75, 1.51, 3.33} // an inner step
	const h, fastest = 20, 1724
	model := zeros()
	done := make([]float64, len(seconds)) // when each is through
	seen := make([][layers][]float32, len(seconds))
	steps := make([]int, len(seconds))
	begin := func(w int, now float64) {
		for l, p := range model {
			seen[w][l] = append([]float32(nil), p.F32()...)
		}
		steps[w] = LocalSteps(h, uint64(1000/seconds[w]), fastest)
		done[w] = now + seconds[w]*float64(steps[w])
	}
	for w := range seconds {
		begin(w, 0)
	}
	for n := range arrivals {
		first := 0
		for w := range done {
			if done[w] < done[first] {
				first = w
			}
		}
		for l, p := range model {
			x := append([]float32(nil), seen[first][l]...)
			for step := range steps[first] {
				g := gradient(x, l, uint64((n*h+step)*layers+l), 0.3)
				Descent{0.05}.Step(x, g.F32(), nil)
			}
			d := make([]float32, len(x))
			for i := range d {
				d[i] = seen[first][l][i] - x[i]
			}
			apply(l, p.F32(), d)
		}
		begin(first, done[first])
	}
	return loss(model) / loss(zeros())
}

// Momentum on every arrival takes updates of the same point for agreement, and runs away or swings; delayed, it trains.
func TestDelayedNesterovBearsStaleUpdates(t *testing.T) {
	delayed := DelayedNesterov{Rate: 0.7, Decay: 0.9, Workers: 4}
	var state [layers]Arrivals
	var momentum [layers][][]float32
	for l := range layers {
		state[l] = Arrivals{Momentum: make([]float32, width*width), Sum: make([]float32, width*width)}
		momentum[l] = [][]float32{make([]float32, width*width)}
	}
	good := asynchronous(400, func(l int, p, d []float32) { delayed.Arrive(p, d, &state[l]) })
	bad := asynchronous(400, func(l int, p, d []float32) { Momentum{0.7, 0.9}.Step(p, d, momentum[l]) })
	t.Logf("delayed %v, on every arrival %v", good, bad)
	if good > 0.05 || bad < 10*good {
		t.Errorf("delayed Nesterov leaves %v of the loss, Nesterov on every arrival %v", good, bad)
	}
}

// Units are cut so that machines of their paces are done together, as nearly as 20 segments let them.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		steps uint32
		paces []float64
		want  []uint32
		share float64
	}{
		{20, []float64{1, 0.77, 0.38, 0.17}, []uint32{20, 15, 7, 3}, 0.96},
		{100, []float64{1, 0.58 / 0.75, 0.58 / 1.51, 0.58 / 3.33}, []uint32{20, 15, 7, 3}, 0.964},
		{60, []float64{0.17, 1, 0.38, 0.77}, []uint32{2, 12, 4, 9}, 0.96},
		{20, []float64{1, 1, 1}, []uint32{4, 4, 4}, 1},
		{20, []float64{1, 0.5}, []uint32{4, 2}, 1},
		{17, []float64{1, 0.5}, []uint32{17, 8}, 0.98},
		{23, []float64{1, 0.5}, []uint32{1, 1}, 0.66},
		{20, []float64{1, 0.001}, []uint32{20, 1}, 0.02},
		{1, []float64{1}, []uint32{1}, 1},
		{20, nil, nil, 0},
	} {
		sizes, share := Sizes(c.steps, c.paces)
		if !slices.Equal(sizes, c.want) || share < c.share || share > 1+1e-9 {
			t.Errorf("%d steps for %v: %v, which lets them work %.4f of the time, want %v and %g", c.steps, c.paces, sizes, share, c.want, c.share)
		}
	}
}
