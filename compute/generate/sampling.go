package generate

import (
	"errors"
	"fmt"
	"math"

	"github.com/starling-network/starling/compute/detmath"
	"github.com/starling-network/starling/compute/philox"
)

// ErrSampling is wrapped by the refusal of a Sampling that has no meaning.
var ErrSampling = errors.New("generate: invalid sampling")

// Sampling says how a token is drawn from logits: from softmax(logits/Temperature), cut to the likeliest tokens. The
// zero Sampling takes the most likely token every time.
type Sampling struct {
	Temperature float64 // 0 is the most likely token
	TopK        int     // draw among the K most likely tokens; 0 is all
	TopP        float64 // draw among the most likely tokens whose probabilities first reach P; 0 and 1 are all
	Seed        uint64

	// Tokens are drawn by the rule of package check, so that an answer can be checked in one pass. Temperature and TopP
	// count in millionths then, and TopK must be 0.
	Checked bool
	First   uint64 // the number of the first token of a text among the draws of the seed
}

// Check reports a Sampling that has no meaning, by an error that wraps ErrSampling.
func (s Sampling) Check() error {
	switch {
	case !(s.Temperature >= 0) || math.IsInf(s.Temperature, 0):
		return fmt.Errorf("%w: temperature is %v, give a number from 0 on", ErrSampling, s.Temperature)
	case s.TopK < 0 || s.TopK > 0 && s.Checked:
		return fmt.Errorf("%w: top-k is %d, give a number from 0 on", ErrSampling, s.TopK)
	case !(s.TopP >= 0 && s.TopP <= 1):
		return fmt.Errorf("%w: top-p is %v, give a number from 0 to 1", ErrSampling, s.TopP)
	}
	return nil
}

// Pick draws the n-th token of a text from finite logits, at least one. Of equally likely tokens the first is the most
// likely. The sampling must have passed Check.
func (s Sampling) Pick(logits []float32, n uint64) int32 {
	n += s.First
	if s.Checked && Millionths(s.Temperature, false) > 0 {
		return s.checked(logits, n)
	}
	best := 0
	for i, x := range logits {
		if x > logits[best] {
			best = i
		}
	}
	if s.Temperature == 0 || s.TopK == 1 || s.Checked {
		return int32(best)
	}
	c := candidates{ids: make([]int32, len(logits)), weights: make([]float64, len(logits))}
	for i, x := range logits {
		c.ids[i] = int32(i)
		c.weights[i] = detmath.Exp64((float64(x) - float64(logits[best])) / s.Temperature)
	}
	c.cut(s.TopK, s.TopP)
	return c.draw(philox.Block(s.Seed, 0, n))
}

// candidates are tokens with weights in proportion to their probabilities.
type candidates struct {
	ids     []int32
	weights []float64
}

func (c *candidates) sum() (sum float64) {
	for _, w := range c.weights {
		sum += w
	}
	return sum
}

// draw takes one of the candidates by 53 random bits.
func (c *candidates) draw(random [4]uint32) int32 {
	at := float64(uint64(random[0])<<21|uint64(random[1])>>11) / (1 << 53) * c.sum()
	drawn := c.ids[0]
	for i, w := range c.weights {
		if w == 0 {
			continue
		}
		drawn = c.ids[i]
		if at -= w; at < 0 {
			break
		}
	}
	return drawn
}

// cut keeps the k most likely candidates, and of those the fewest that have a share p of their probability. 0 is all.
func (c *candidates) cut(k int, p float64) {
	if k > 0 && k < len(c.ids) {
		c.keep(func(n int, _ float64) bool { return n == k })
	}
	if p > 0 && p < 1 {
		bound := p * c.sum()
		c.keep(func(_ int, sum float64) bool { return sum >= bound })
	}
}

// keep drops all but the most likely candidates, which it puts in order: as many as are enough by their number and sum.
func (c *candidates) keep(enough func(n int, sum float64) bool) {
	// The front is a heap of the discarded candidates; kept ones move to the end, the most likely last.
	all := len(c.ids)
	for i := all/2 - 1; i >= 0; i-- {
		c.sink(i, all)
	}
	n, sum := 0, 0.0
	for n < all && !enough(n, sum) {
		n++
		sum += c.weights[0]
		c.swap(0, all-n)
		c.sink(0, all-n)
	}
	for i := range min(n, all/2) {
		c.swap(i, all-1-i)
	}
	c.ids, c.weights = c.ids[:n], c.weights[:n]
}

// before is the order of the candidates: total, so that how the heap works does not show.
func (c *candidates) before(i, j int) bool {
	return c.weights[i] > c.weights[j] || c.weights[i] == c.weights[j] && c.ids[i] < c.ids[j]
}

func (c *candidates) swap(i, j int) {
	c.ids[i], c.ids[j] = c.ids[j], c.ids[i]
	c.weights[i], c.weights[j] = c.weights[j], c.weights[i]
}

// sink restores the heap of the first n candidates below i.
func (c *candidates) sink(i, n int) {
	for {
		child := 2*i + 1
		if child >= n {
			return
		}
		if child+1 < n && c.before(child+1, child) {
			child++
		}
		if !c.before(child, i) {
			return
		}
		c.swap(i, child)
		i = child
	}
}
