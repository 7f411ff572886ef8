package aggregate

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/philox"
)

// An attack makes the updates of hostile workers, all of which know all honest ones.
type attack struct {
	name string
	make func(honest [][]float32, hostile int) [][]float32
}

// The attacks of the literature. Label flipping is done where the data are, in train below.
var attacks = []attack{
	{"sign flip x 10", scaledMean(-10)},
	{"inner product 0.1", scaledMean(-0.1)}, // Xie, Koyejo and Gupta 2020: the mean of the honest turned around
	{"inner product 1.5", scaledMean(-1.5)},
	{"a little is enough", littleIsEnough},
	{"mimic", mimic},
	{"huge", func(_ [][]float32, hostile int) [][]float32 {
		return slices.Repeat([][]float32{fill(44, 1e30)}, hostile)
	}},
	{"large", func(_ [][]float32, hostile int) [][]float32 {
		return slices.Repeat([][]float32{fill(44, 1e12)}, hostile)
	}},
}

func fill(n int, v float32) []float32 { return slices.Repeat([]float32{v}, n) }

func scaledMean(by float64) func([][]float32, int) [][]float32 {
	return func(honest [][]float32, hostile int) [][]float32 {
		mean, _ := moments(honest)
		x := make([]float32, len(mean))
		for i, m := range mean {
			x[i] = float32(by * m)
		}
		return slices.Repeat([][]float32{x}, hostile)
	}
}

// littleIsEnough moves every coordinate by so many standard deviations that enough honest updates lie further out to
// make a majority with the hostile ones (Baruch, Baruch and Goldberg 2019).
func littleIsEnough(honest [][]float32, hostile int) [][]float32 {
	n := len(honest) + hostile
	supporters := n/2 + 1 - hostile
	z := quantile(float64(n-hostile-supporters) / float64(n-hostile))
	mean, deviation := moments(honest)
	x := make([]float32, len(mean))
	for i := range x {
		x[i] = float32(mean[i] - z*deviation[i])
	}
	return slices.Repeat([][]float32{x}, hostile)
}

// quantile is the inverse of the standard normal distribution function.
func quantile(p float64) float64 {
	low, high := -10.0, 10.0
	for range 60 {
		if middle := (low + high) / 2; math.Erfc(-middle/math.Sqrt2)/2 < p {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// mimic repeats the honest update that lies farthest out along the direction in which they differ most (Karimireddy et
// al. 2022).
func mimic(honest [][]float32, hostile int) [][]float32 {
	mean, _ := moments(honest)
	along := make([]float64, len(mean))
	for i := range along {
		along[i] = 1 + float64(i%3)
	}
	project := func(x []float32) (p float64) {
		for i, v := range x {
			p += (float64(v) - mean[i]) * along[i]
		}
		return p
	}
	for range 20 { // power iteration on the covariance
		next := make([]float64, len(along))
		var norm float64
		for _, x := range honest {
			p := project(x)
			for i, v := range x {
				next[i] += p * (float64(v) - mean[i])
			}
		}
		for _, v := range next {
			norm += v * v
		}
		for i := range next {
			along[i] = next[i] / math.Sqrt(norm+1e-300)
		}
	}
	best := slices.MaxFunc(honest, func(x, y []float32) int {
		return int(math.Copysign(1, project(x)-project(y)))
	})
	return slices.Repeat([][]float32{best}, hostile)
}

func moments(rows [][]float32) (mean, deviation []float64) {
	mean, deviation = make([]float64, len(rows[0])), make([]float64, len(rows[0]))
	for _, r := range rows {
		for i, v := range r {
			mean[i] += float64(v) / float64(len(rows))
		}
	}
	for _, r := range rows {
		for i, v := range r {
			deviation[i] += (float64(v) - mean[i]) * (float64(v) - mean[i]) / float64(len(rows))
		}
	}
	for i, v := range deviation {
		deviation[i] = math.Sqrt(v)
	}
	return mean, deviation
}

func TestQuantile(t *testing.T) {
	for p, want := range map[float64]float64{0.5: 0, 0.975: 1.959964, 0.1: -1.281552} {
		if got := quantile(p); math.Abs(got-want) > 1e-6 {
			t.Errorf("quantile of %v: %v, want %v", p, got, want)
		}
	}
}

// How many of 11 a rule bears: with so many hostile updates of any size and direction the result stays within the
// spread of the honest ones, times a factor that only the rule sets.
func TestBreakdownPoints(t *testing.T) {
	const n, size = 11, 44
	for _, c := range []struct {
		name    string
		rule    Rule
		hostile int
		factor  float64
	}{
		{"median", CoordinateMedian{}, 5, 1.5}, {"trimmed mean", Trim{0.4}, 4, 1.5},
		{"krum", Selection{Hostile: 4, Keep: 1}, 4, 1.5},
		{"multi-krum", Selection{Hostile: 4}, 4, 1.5}, {"geometric median", named[GeometricMedian], 5, 1.5},
		{"centered clip", named[CenteredClip], 5, 2.5}, {"clipped mean", named[ClippedMean], 5, 2.5},
	} {
		for hostile := range c.hostile + 1 {
			for _, scale := range []float32{1, 1e3, 1e9, 1e20, 3e38} {
				u := random(n, size, 9)
				honest := make([][]float32, 0, n)
				for i := range u {
					x := u[i].Tensors[0].F32()
					if i%2 == 1 && i/2 < hostile {
						for j := range x {
							x[j] = scale * (0.5 + float32(j%2)/2) // in one direction, together
						}
						continue
					}
					for j := range x {
						x[j] += 3
					}
					honest = append(honest, x)
				}
				got := combine(t, c.rule, u)
				mean, deviation := moments(honest)
				var away, spread float64
				for j, v := range got {
					away += (float64(v) - mean[j]) * (float64(v) - mean[j])
					spread += deviation[j] * deviation[j]
				}
				// The clipped mean is bounded by the length of the updates, not by their spread.
				if c.name == "clipped mean" {
					for _, m := range mean {
						spread += m * m
					}
				}
				if !(away <= c.factor*c.factor*spread) {
					t.Errorf("%s with %d hostile of scale %g: %v away, spread %v", c.name, hostile, scale, math.Sqrt(away),
						math.Sqrt(spread))
				}
			}
		}
	}
}

// One more than they bear, and the attacker decides: the points above are sharp.
func TestOneMoreBreaksThem(t *testing.T) {
	const n = 11
	for _, c := range []struct {
		name    string
		rule    Rule
		hostile int
	}{
		{"mean", Average{}, 1}, {"median", CoordinateMedian{}, 6}, {"trimmed mean", Trim{0.4}, 5},
		{"krum", Selection{Hostile: 4, Keep: 1}, 6}, {"geometric median", named[GeometricMedian], 6},
		{"centered clip", named[CenteredClip], 6},
	} {
		u := random(n, 44, 9)
		for i := range c.hostile {
			for j := range u[i].Tensors[0].F32() {
				u[i].Tensors[0].F32()[j] = 1e9
			}
		}
		if got := combine(t, c.rule, u); got[0] < 1e3 {
			t.Errorf("%s bore %d hostile of %d: %v", c.name, c.hostile, n, got[0])
		}
	}
}

// train is softmax regression on four clusters in ten dimensions: ten workers, two of them hostile, a gradient of each
// in every round. It returns the loss on data of its own.
func train(t *testing.T, r Rule, a *attack, flip bool) float64 {
	const workers, hostile, classes, dims, each, rounds, rate = 10, 2, 4, 10, 20, 50, 0.5
	weights := make([]float32, classes*(dims+1))
	noise := make([]float32, 2*workers*each*dims)
	philox.NormalTo(noise, 17, 0)
	example := func(i int) (x [dims + 1]float64, class int) {
		class = i % classes
		for d := range dims {
			x[d] = float64(noise[i*dims+d])
			if d%classes == class {
				x[d] += 1.5
			}
		}
		x[dims] = 1
		return x, class
	}
	loss := func(x [dims + 1]float64, class int, gradient []float64) float64 {
		var logits [classes]float64
		var sum float64
		for c := range logits {
			for d, v := range x {
				logits[c] += v * float64(weights[c*(dims+1)+d])
			}
		}
		top := slices.Max(logits[:])
		for _, l := range logits {
			sum += math.Exp(l - top)
		}
		for c, l := range logits {
			p := math.Exp(l-top) / sum
			if c == class {
				p--
			}
			for d, v := range x {
				if gradient != nil {
					gradient[c*(dims+1)+d] += p * v / each
				}
			}
		}
		return math.Log(sum) - (logits[class] - top)
	}
	for range rounds {
		var rows [][]float32
		for w := range workers {
			gradient := make([]float64, len(weights))
			for i := range each {
				x, class := example(w*each + i)
				if flip && w >= workers-hostile {
					class = classes - 1 - class
				}
				loss(x, class, gradient)
			}
			row := make([]float32, len(weights))
			for i, g := range gradient {
				row[i] = float32(g)
			}
			rows = append(rows, row)
		}
		if a != nil {
			rows = append(rows[:workers-hostile:workers-hostile], a.make(rows[:workers-hostile], hostile)...)
		}
		for i, g := range combine(t, r, of(rows...)) {
			weights[i] -= rate * g
		}
	}
	var total float64
	for i := range workers * each {
		x, class := example(workers*each + i)
		total += loss(x, class, nil) / (workers * each)
	}
	return total
}

// Training with two hostile workers of ten ends near where it ends without them, for every robust rule and attack.
func TestTrainingUnderAttack(t *testing.T) {
	clean := train(t, Average{}, nil, false)
	if clean > 0.45 {
		t.Fatalf("loss without attack %v", clean)
	}
	for _, c := range []struct {
		name   string
		rule   Rule
		margin float64 // nats above the clean loss, at most
	}{
		// one worker's data
		{"median", CoordinateMedian{}, 0.1}, {"trimmed mean", Trim{0.2}, 0.1}, {"krum", Selection{Hostile: 2, Keep: 1}, 0.25},
		{"multi-krum", Selection{Hostile: 2}, 0.2}, {"geometric median", named[GeometricMedian], 0.1},
		{"centered clip", named[CenteredClip], 0.1}, {"clipped mean", named[ClippedMean], 0.3},
	} {
		for _, a := range attacks {
			if got := train(t, c.rule, &a, false); !(got <= clean+c.margin) {
				t.Errorf("%s under %s: loss %v, without attack %v", c.name, a.name, got, clean)
			}
		}
		if got := train(t, c.rule, nil, true); !(got <= clean+c.margin) {
			t.Errorf("%s under label flip: loss %v, without attack %v", c.name, got, clean)
		}
	}
	if got := train(t, Average{}, &attacks[0], false); got < clean+1 {
		t.Errorf("the plain mean bore a sign flip: loss %v", got)
	}
}
