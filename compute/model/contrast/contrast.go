// Package contrast is contrastive learning in graphs: vectors of pairs that are compared with those of other pairs of
// the same batch. It knows no network and no weights.
package contrast

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model/attention"
	"github.com/starling-network/starling/compute/record"
)

// Pairs are anchors, each with its positive.
type Pairs struct {
	Anchors, Positives     *graph.Node // [n, width], each of length 1
	AnchorIDs, PositiveIDs *graph.Node // int32 [n]: equal for texts that are the same
}

// scores [n, n] are the cosines of each anchor with each positive, divided by the temperature. Of a positive that is no
// candidate of the anchor it is attention.Masked: one of another pair with the same anchor, or with the same positive,
// which is as right an answer as the own one.
func (p Pairs) scores(temperature float64) *graph.Node {
	cosines := graph.DotGeneral(p.Anchors, []int{1}, nil, p.Positives, []int{1}, nil)
	same := func(ids *graph.Node) *graph.Node {
		shape := cosines.Shape().Dimensions
		return graph.Equal(graph.ExpandAndBroadcast(ids, shape, []int{1}), graph.ExpandAndBroadcast(ids, shape, []int{0}))
	}
	alike := graph.LogicalOr(same(p.AnchorIDs), same(p.PositiveIDs))
	other := graph.LogicalAnd(alike, graph.LogicalNot(p.own()))
	hidden := graph.AddScalar(graph.ZerosLike(cosines), attention.Masked)
	return graph.Where(other, hidden, graph.MulScalar(cosines, 1/temperature))
}

// own is where a positive is that of the anchor: [n, n].
func (p Pairs) own() *graph.Node {
	g, n := p.AnchorIDs.Graph(), p.AnchorIDs.Shape().Size()
	square := shapes.Make(dtypes.Int32, n, n)
	return graph.Equal(graph.Iota(g, square, 0), graph.Iota(g, square, 1))
}

// Loss is the mean over the pairs of the cross-entropy with which an anchor finds its positive among its candidates,
// which are the positives of the batch (van den Oord et al. 2018, equation 4; with the other pairs of a batch as the
// negatives, Henderson et al. 2017, section 4.4). It is that of MultipleNegativesRankingLoss of sentence-transformers,
// whose scale is 1/temperature.
func (p Pairs) Loss(temperature float64) *graph.Node {
	scores := p.scores(temperature)
	n := scores.Shape().Dimensions[0]
	diagonal := graph.Iota(scores.Graph(), shapes.Make(dtypes.Int32, n), 0)
	return graph.MulScalar(graph.ReduceAllSum(record.CrossEntropy(scores, diagonal)), 1/float64(n))
}

// Ranks [n] are the places, from 1, of the positives among the candidates of their anchors, by the cosine. Candidates
// with the same cosine come before: vectors that are all the same find nothing.
func (p Pairs) Ranks() *graph.Node {
	scores := graph.StopGradient(p.scores(1))
	mine := graph.ReduceSum(graph.Where(p.own(), scores, graph.ZerosLike(scores)), -1)
	before := graph.GreaterOrEqual(scores, graph.ExpandAndBroadcast(mine, scores.Shape().Dimensions, []int{1}))
	return graph.ReduceSum(graph.ConvertDType(before, dtypes.Float32), -1)
}
