package rollout

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
)

// Correction is how a token of an answer that another policy drew counts, by the ratio of its probabilities in the
// policy that learns and in that one. Without one it is Clipped.
type Correction string

const (
	// Clipped counts a token by the ratio (Schulman et al. 2017, "Proximal Policy Optimization", equation 7): not at all
	// where it has left the range up to clip on the side to which the gradient moves it, nor, of an answer below the mean,
	// where it is above most (Prime Intellect 2025, "INTELLECT-2", section 3.4).
	Clipped Correction = "clipped"

	// Tapered counts a token of an answer above the mean as 1, and of one below it by the ratio, at most 1 (Le Roux et al.
	// 2025, "Tapered Off-Policy REINFORCE", with the ratio of whole answers). So tokens that the policy has learnt to
	// avoid are not lowered without bound, and those that it has learnt to say are not left out.
	Tapered Correction = "tapered"
)

// Bounds of Clipped.
const (
	clip = 0.2
	most = 4
)

// valid reports whether tokens can count so.
func (c Correction) valid(apart bool) bool { return c == "" || apart && (c == Clipped || c == Tapered) }

// Of are the weights [n] of the cross-entropies own [n] of tokens, of which others [n] are those in the policy that
// drew them.
func (c Correction) Of(weight, others, own *graph.Node) *graph.Node {
	if c == Tapered {
		return tapered(weight, others, own)
	}
	return clipped(weight, others, own)
}

// clipped is Of for Clipped. A ratio beyond e^maxLog counts as that: it leaves the range in any case.
func clipped(weight, others, own *graph.Node) *graph.Node {
	ratio := graph.Exp(graph.MinScalar(graph.Sub(others, graph.StopGradient(own)), maxLog))
	bound := func(x float64) *graph.Node { return graph.MulScalar(graph.OnesLike(ratio), x) }
	flag := func(x *graph.Node) *graph.Node { return graph.ConvertDType(x, dtypes.Float32) }
	gains := graph.LessOrEqual(ratio, bound(1+clip))
	loses := graph.Mul(flag(graph.GreaterOrEqual(ratio, bound(1-clip))), flag(graph.LessOrEqual(ratio, bound(most))))
	better := graph.GreaterThan(weight, graph.ZerosLike(weight))
	return graph.Mul(graph.Mul(weight, ratio), graph.Where(better, flag(gains), loses))
}

// tapered is Of for Tapered.
func tapered(weight, others, own *graph.Node) *graph.Node {
	ratio := graph.Exp(graph.MinScalar(graph.Sub(others, graph.StopGradient(own)), 0))
	better := graph.GreaterThan(weight, graph.ZerosLike(weight))
	return graph.Where(better, weight, graph.Mul(weight, ratio))
}
