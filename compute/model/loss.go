package model

import (
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/record"
)

// crossEntropy is the mean over rows of -log softmax(logits)[target], in nats: logits [n, vocab], targets int32 [n].
func crossEntropy(logits, targets *graph.Node) *graph.Node {
	return graph.MulScalar(graph.ReduceAllSum(record.CrossEntropy(logits, targets)), 1/float64(dims(logits)[0]))
}
