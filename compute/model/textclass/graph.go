package textclass

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/padding"
)

// Scores implements model.Classifier: the linear layer on the hidden state of the last token that is no padding, or of
// the first token if all are. No token sees padding, as it comes after the others.
func (n Network) Scores(p model.Parameters, examples *graph.Node) *graph.Node {
	rows, length := examples.Shape().Dimensions[0], n.length
	examples, last := padding.Last(examples, n.pad, n.config.VocabSize())
	first := graph.MulScalar(graph.Iota(examples.Graph(), shapes.Make(dtypes.Int32, rows), 0), length)
	state := graph.Gather(p.Hidden(n.config, examples), graph.InsertAxes(graph.Add(first, last), -1))
	return graph.DotGeneral(state, []int{1}, nil, p.At(ScoreName), []int{1}, nil)
}
