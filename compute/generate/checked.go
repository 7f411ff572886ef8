package generate

import (
	"math"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/model/check/given"
	"github.com/starling-network/starling/compute/model/rollout"
	"github.com/starling-network/starling/compute/philox"
)

// Millionths is a number from 0 on in millionths, rounded to the nearest, as receipts of answers have temperatures and
// shares. A share of 0, which cuts nothing, is all of them.
func Millionths(x float64, share bool) uint32 {
	const million = 1_000_000
	n := uint32(min(math.RoundToEven(x*million), math.MaxUint32))
	if share && n == 0 {
		return million
	}
	return n
}

// checked draws a token by the rule of package compute/model/check, of logits as Pick takes them: each operation is
// rounded to float32, and elementary functions are those of version 1 of the numerics.
func (s Sampling) checked(logits []float32, n uint64) int32 {
	d := given.NewDrawing(Millionths(s.Temperature, false), Millionths(s.TopP, true))
	functions := elementary.Math{Version: kernel.Version1}
	scores, noise := make([]float32, len(logits)), gumbel(functions, len(logits), s.Seed, n)
	for i, x := range logits {
		scores[i] = x * d.Inverse
	}
	outside := rollout.OutsideOf(functions, scores, d.Share)
	best := 0
	for i := range scores {
		scores[i] += float32(noise[i] * d.Noise)
		if outside[i] {
			scores[i] = given.Lowest
		}
		if scores[i] > scores[best] {
			best = i
		}
	}
	return int32(best)
}

// gumbel is the noise of draw n of a seed: see record.Gumbel.
func gumbel(m elementary.Math, vocab int, seed, n uint64) []float32 {
	words := make([]uint32, given.Words(vocab))
	philox.BlocksTo(words, seed, given.Stream, n*uint64(len(words)/4))
	u := make([]float32, vocab)
	for i := range u {
		u[i] = min(float32(float32(words[i])*0x1p-32)+0x1p-33, 1-0x1p-24)
	}
	minusLog := func() {
		m.Log(u, u)
		for i := range u {
			u[i] = -u[i]
		}
	}
	minusLog()
	minusLog()
	return u
}
