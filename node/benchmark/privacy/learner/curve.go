package learner

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/starling-network/starling/exchange/dpsgd"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/node/benchmark/privacy/digits"
)

// Point is what owners learn together at an epsilon for each of their examples.
type Point struct {
	Dirichlet float64 `json:"dirichlet"` // of the shares of the digits of an owner: the less, the more owners differ
	Wanted    float64 `json:"wanted"`    // largest epsilon; 0: no noise
	Noise     float64 `json:"noise"`
	Epsilon   float64 `json:"epsilon"` // 0: no noise
	Delta     float64 `json:"delta"`
	Accuracy  float64 `json:"accuracy"` // on digits of no owner
}

// Delta is the one at which epsilon is stated.
const Delta = 1e-5

// Size is how much a measurement computes.
type Size struct {
	Owners, Examples int // and of each
	Rounds           int
	Models           int // of which the mean is taken, for membership
}

// Curve trains on digits of owners with shares of Dirichlet distributions, without noise and at each epsilon.
func Curve(ctx context.Context, s Size, progress func(Point)) (points []Point, err error) {
	test := Drawn(1<<20, 1000)
	for _, alpha := range []float64{0.1, 0.5} {
		owners := Owners(alpha, s)
		for _, wanted := range []float64{0, 8, 3, 1} {
			p := Plan{Terms: dpsgd.Terms{Clip: 1, Lot: float64(s.Examples) / 40}, Rounds: s.Rounds, Steps: 5, Rate: 0.5}
			x := Point{Dirichlet: alpha, Wanted: wanted, Delta: Delta}
			if wanted > 0 {
				p = p.For(wanted, s.Examples, Delta)
				x.Noise, x.Epsilon = p.Noise, p.Epsilon(s.Examples, Delta)
			}
			m, err := New(1)
			if err != nil {
				return nil, err
			}
			if err := m.Train(ctx, p, owners, prg.Key{7}); err != nil {
				return nil, err
			}
			if x.Accuracy, err = m.Accuracy(test); err != nil {
				return nil, err
			}
			points = append(points, x)
			progress(x)
		}
	}
	return points, nil
}

// Attacked is how well an attacker tells the examples that one owner has trained a model on from others.
type Attacked struct {
	Epsilon float64 `json:"epsilon"` // of an example; 0: no noise
	Noise   float64 `json:"noise"`
	Area    float64 `json:"area"`     // of Membership, the mean over models
	Seen    float64 `json:"seen"`     // accuracy on the examples
	Unseen  float64 `json:"accuracy"` // and on others
}

// Members trains models of one owner whose examples have a wrong digit each fourth time, so that a model can know them
// by heart alone: without noise, and at an epsilon.
func Members(ctx context.Context, epsilon float64, s Size) (all []Attacked, err error) {
	for _, wanted := range []float64{0, epsilon} {
		p := Plan{Terms: dpsgd.Terms{Clip: 1, Lot: float64(s.Examples) / 10}, Rounds: 1, Steps: 20 * s.Rounds, Rate: 0.5}
		a := Attacked{}
		if wanted > 0 {
			p = p.For(wanted, s.Examples, Delta)
			a.Epsilon, a.Noise = p.Epsilon(s.Examples, Delta), p.Noise
		} else {
			p.Clip = 1000 // no gradient is as long
		}
		for k := range s.Models {
			m, err := New(uint64(k))
			if err != nil {
				return nil, err
			}
			in, out := mislabelled(uint64(2*k), s.Examples), mislabelled(uint64(2*k+1), s.Examples)
			if err := m.Train(ctx, p, []Data{in}, prg.Key{8, byte(k)}); err != nil {
				return nil, err
			}
			for _, f := range []struct {
				into *float64
				of   func() (float64, error)
			}{{&a.Area, func() (float64, error) { return m.Membership(in, out) }},
				{&a.Seen, func() (float64, error) { return m.Accuracy(in) }},
				{&a.Unseen, func() (float64, error) { return m.Accuracy(out) }}} {
				x, err := f.of()
				if err != nil {
					return nil, err
				}
				*f.into += x / float64(s.Models)
			}
		}
		all = append(all, a)
	}
	return all, nil
}

// Drawn are examples of all digits in turn.
func Drawn(seed uint64, n int) (d Data) {
	for i := range n {
		d = append(d, digits.Draw(seed, i, i%digits.Classes))
	}
	return d
}

// mislabelled is Drawn with each fourth digit named by another.
func mislabelled(seed uint64, n int) Data {
	d := Drawn(seed, n)
	for i := 0; i < n; i += 4 {
		d[i].Digit = (d[i].Digit + 1 + i/(4*digits.Classes)%(digits.Classes-1)) % digits.Classes
	}
	return d
}

// Owners are the examples of owners, each with shares of the digits of its own that a Dirichlet distribution with this
// parameter draws.
func Owners(alpha float64, s Size) (owners []Data) {
	random := rand.New(rand.NewPCG(math.Float64bits(alpha), 3))
	for o := range s.Owners {
		var below [digits.Classes]float64
		sum := 0.0
		for d := range below {
			sum += gamma(random, alpha)
			below[d] = sum
		}
		data := Data{}
		for i := range s.Examples {
			u, d := random.Float64()*sum, 0
			for d < digits.Classes-1 && u > below[d] {
				d++
			}
			data = append(data, digits.Draw(uint64(1000+o), i, d))
		}
		owners = append(owners, data)
	}
	return owners
}

// gamma draws from the gamma distribution of a shape below 1 (Marsaglia and Tsang 2000, with their boost).
func gamma(random *rand.Rand, shape float64) float64 {
	d := shape + 1 - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := random.NormFloat64()
		v := math.Pow(1+c*x, 3)
		if u := random.Float64(); v > 0 && math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * math.Pow(random.Float64(), 1/shape)
		}
	}
}
