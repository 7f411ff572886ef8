// Package discrete draws integers from the discrete Gaussian distribution exactly: with integer arithmetic alone, so
// that no bit of the noise depends on how a processor rounds (Canonne, Kamath and Steinke 2020, algorithms 1 to 3;
// Mironov 2012 shows what rounded noise discloses). It decides no amount of noise.
package discrete

import (
	"errors"
	"fmt"

	"github.com/starling-network/starling/exchange/prg"
)

// MaxScale is the largest parameter of a Gaussian, with which no product leaves 64 bits.
const MaxScale = 1 << 24

// scales is how many times the parameter a value is away from zero at most; others have a probability below e^-127.
const scales = 127

// ErrScale is returned for a parameter outside 1..MaxScale.
var ErrScale = errors.New("discrete Gaussian: the scale is out of range")

// Add adds an independent sample to each of values modulo 2^32: the integer x has a probability in proportion to
// exp(-x²/(2·scale²)). The same key gives the same samples.
func Add(values []uint32, scale uint64, key prg.Key) error {
	if scale < 1 || scale > MaxScale {
		return fmt.Errorf("%w: %d, wanted 1..%d", ErrScale, scale, MaxScale)
	}
	s := sampler{prg.New(key)}
	for i := range values {
		values[i] += uint32(s.gaussian(scale))
	}
	return nil
}

type sampler struct{ *prg.Stream }

// gaussian accepts a sample of the discrete Laplace distribution (algorithm 3, with t = scale).
func (s sampler) gaussian(scale uint64) int64 {
	for {
		y := s.laplace(scale)
		away := uint64(max(y, -y))
		away = max(away, scale) - min(away, scale)
		if s.exp(away*away, 2*scale*scale) {
			return y
		}
	}
}

// laplace draws x with a probability in proportion to exp(-|x|/scale) (algorithm 2).
func (s sampler) laplace(scale uint64) int64 {
	for {
		u := s.Below(scale)
		if !s.exp(u, scale) {
			continue
		}
		v := uint64(0)
		for v <= scales && s.exp(1, 1) {
			v++
		}
		x := int64(u + scale*v)
		negative := s.Below(2) == 1
		switch {
		case v > scales || negative && x == 0:
			continue
		case negative:
			return -x
		}
		return x
	}
}

// exp is true with probability exp(-a/b) (algorithm 1).
func (s sampler) exp(a, b uint64) bool {
	for ; a > b; a -= b {
		if !s.below1(1, 1) {
			return false
		}
	}
	return s.below1(a, b)
}

// below1 is exp for a at most b: of k uniform events with probabilities a/b, a/2b, ..., the first that fails is odd.
func (s sampler) below1(a, b uint64) bool {
	k := uint64(1)
	for s.Below(b*k) < a {
		k++
	}
	return k%2 == 1
}
