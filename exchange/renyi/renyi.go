// Package renyi accounts for differential privacy in Rényi form (Mironov 2017): the losses of the uses of
// a mechanism are added order by order, and their sum is stated as one (epsilon, delta). It adds no noise.
package renyi

import (
	"math"

	"github.com/starling-network/starling/compute/detmath"
)

// Orders are 2 up to this integer.
const last = 512

// Loss is the Rényi divergence that a mechanism is bounded by, at the orders 2, 3, ..., 512. The zero value is that of
// a mechanism that discloses nothing.
type Loss [last - 1]float64

// Gaussian is the loss of the Gaussian mechanism with noise of sigma times the sensitivity. Of mechanisms that each see
// a participant with probability q, drawn independently and unknown to the adversary, it is the sampled Gaussian
// mechanism (Mironov, Talwar and Zhang 2019, section 3.3); q of 1 is the plain mechanism. Noise so near zero that
// float64 has no number for the loss gives +Inf, and so does none.
func Gaussian(q, sigma float64) (l Loss) {
	if q == 0 {
		return l
	}
	twice := 2 * sigma * sigma
	for i := range l {
		a := float64(i + 2)
		switch {
		case twice == 0:
			l[i] = math.Inf(1)
		case q == 1:
			l[i] = a / twice
		default:
			l[i] = sampled(a, q, twice) / (a - 1)
		}
	}
	return l
}

// sampled is the logarithm of the sum over k of binomial(a,k)·(1-q)^(a-k)·q^k·exp((k²-k)/twice), where twice is twice
// the variance.
func sampled(a, q, twice float64) float64 {
	in, out := detmath.Log64(q), detmath.Log64(1-q)
	choose, sum := 0.0, math.Inf(-1)
	for k := 0.0; k <= a; k++ {
		sum = logAdd(sum, choose+float64((a-k)*out)+float64(k*in)+(k*k-k)/twice)
		choose += detmath.Log64(a-k) - detmath.Log64(k+1)
	}
	return sum
}

// logAdd is the logarithm of exp(x) + exp(y).
func logAdd(x, y float64) float64 {
	if x < y {
		x, y = y, x
	}
	if math.IsInf(y, -1) || math.IsInf(x, 1) {
		return x
	}
	return x + detmath.Log64(1+detmath.Exp64(y-x))
}

// Times is the loss of n uses of a mechanism.
func (l Loss) Times(n float64) Loss {
	if n == 0 {
		return Loss{}
	}
	for i := range l {
		l[i] *= n
	}
	return l
}

// Epsilon is the least epsilon with which the loss is (epsilon, delta)-differential privacy, of all orders (Canonne,
// Kamath and Steinke 2020, proposition 12). It is at least 0.
func (l Loss) Epsilon(delta float64) float64 {
	return l.least(func(a float64) float64 {
		return detmath.Log64((a-1)/a) - (detmath.Log64(delta)+detmath.Log64(a))/(a-1)
	})
}

// Classic is Epsilon by the first conversion (Mironov 2017, proposition 3), which older reports state.
func (l Loss) Classic(delta float64) float64 {
	return l.least(func(a float64) float64 { return -detmath.Log64(delta) / (a - 1) })
}

func (l Loss) least(more func(a float64) float64) float64 {
	if l == (Loss{}) {
		return 0
	}
	least := math.Inf(1)
	for i, e := range l {
		least = min(least, e+more(float64(i+2)))
	}
	return max(0, least)
}
