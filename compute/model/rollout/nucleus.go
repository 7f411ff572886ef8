package rollout

import (
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/model/attention"
)

// Policy is the distribution that tokens are drawn from, and of which the loss takes log-probabilities: the softmax of
// logits at a temperature, over the nucleus alone where TopP is above 0 and below 1 (Holtzman et al. 2020, section
// 3.1).
type Policy struct{ Temperature, TopP float64 }

// truncates reports whether tokens outside of a nucleus have no probability.
func (p Policy) truncates() bool { return p.TopP > 0 && p.TopP < 1 }

// Logits are those of the policy, from logits [n, vocab] of a model: tokens outside of the nucleus have no probability
// and no gradient.
func (p Policy) Logits(logits *graph.Node) *graph.Node { return p.Among(logits, logits) }

// Among are logits [n, vocab] of another model over the nucleus of this policy, whose model has the logits own.
func (p Policy) Among(logits, own *graph.Node) *graph.Node {
	logits = graph.MulScalar(logits, 1/p.Temperature)
	if !p.truncates() {
		return logits
	}
	return kept(p.outside(graph.StopGradient(own)), logits)
}

// kept are logits, with no probability where a token is outside of the nucleus.
func kept(outside, logits *graph.Node) *graph.Node {
	return graph.Where(outside, graph.MulScalar(graph.OnesLike(logits), attention.Masked), logits)
}

// The threshold of a nucleus is one of 2^halvings logarithms of the ratio to the highest probability, from 0 down to
// -depth: two tokens whose probabilities differ by less than a factor of 1.0005 are both in it, or none.
const (
	halvings = 16
	depth    = 32
)

// outside is whether a token is not in the nucleus: [n, vocab] of bool, from logits of a model.
func (p Policy) outside(logits *graph.Node) *graph.Node {
	return Outside(graph.MulScalar(logits, 1/p.Temperature),
		func(sum *graph.Node) *graph.Node { return graph.MulScalar(sum, p.TopP) })
}

// Outside is whether a token is not among the most probable ones that have a wanted part of all probability together,
// which sums to sum [n]: those with at least the highest threshold for which they do. A token whose logit is NaN is not
// outside, so that a model that diverged has a loss that is NaN. [n, vocab] of bool, from logits that are divided by
// the temperature.
func Outside(scaled *graph.Node, part func(sum *graph.Node) *graph.Node) *graph.Node {
	n, vocab := scaled.Shape().Dim(0), scaled.Shape().Dim(1)
	across := func(x *graph.Node) *graph.Node { return graph.ExpandAndBroadcast(x, []int{n, vocab}, []int{1}) }
	below := graph.Sub(scaled, across(graph.ReduceMax(scaled, -1)))
	probable := graph.Exp(below)
	none, wanted := graph.ZerosLike(probable), part(graph.ReduceSum(probable, -1))
	least := graph.MulScalar(graph.OnesLike(wanted), -depth)
	for step := float64(depth) / 2; step >= depth/float64(int(1)<<halvings); step /= 2 {
		higher := graph.AddScalar(least, step)
		has := graph.ReduceSum(graph.Where(graph.GreaterOrEqual(below, across(higher)), probable, none), -1)
		least = graph.Where(graph.GreaterOrEqual(has, wanted), higher, least)
	}
	return graph.LessThan(below, across(least))
}

// OutsideOf is Outside of one row, computed at once: of the nucleus that has a share of all probability.
func OutsideOf(m elementary.Math, scaled []float32, share float32) []bool {
	below, probable := make([]float32, len(scaled)), make([]float32, len(scaled))
	most := slices.Max(scaled)
	for i, x := range scaled {
		below[i] = x - most
	}
	m.Exp(probable, below)
	wanted, least := m.Path.Sum(probable)*share, float32(-depth)
	part := make([]float32, len(scaled))
	for step := float32(depth) / 2; step >= depth/float32(int(1)<<halvings); step /= 2 {
		higher := least + step
		for i, x := range below {
			if part[i] = 0; x >= higher {
				part[i] = probable[i]
			}
		}
		if m.Path.Sum(part) >= wanted {
			least = higher
		}
	}
	out := make([]bool, len(scaled))
	for i, x := range below {
		out[i] = x < least
	}
	return out
}
