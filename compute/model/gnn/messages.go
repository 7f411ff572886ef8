package gnn

import (
	"math"
	"slices"

	"github.com/starling-network/starling/compute/data/nodes"
	"github.com/starling-network/starling/compute/tensor"
)

// Messages are the values of the tensors that a network of an architecture reads of a graph, by their names, and its
// size. A message leads along an edge from a node to another, which sums what it receives, in order of the messages:
// ascending by their targets, then by their sources.
//
// A GCN has a message from each node to itself too, and the weight of one from i to j is 1/sqrt(d(i) d(j)), where d is
// the number of messages that a node receives (Kipf and Welling 2017, equation 2). The weight of a SAGE is 1/d(j). Both
// are computed in float64 and rounded once.
func Messages(architecture string, g *nodes.Graph) (map[string]*tensor.Tensor, Size) {
	edges := slices.Clone(g.Edges)
	if architecture == GCN {
		for i := range g.IDs {
			edges = append(edges, [2]int32{int32(i), int32(i)})
		}
	}
	slices.SortFunc(edges, func(a, b [2]int32) int { return slices.Compare([]int32{a[1], a[0]}, []int32{b[1], b[0]}) })
	received := make([]int64, len(g.IDs))
	for _, e := range edges {
		received[e[1]]++
	}
	n := len(edges)
	from, to, weights := make([]int32, n), make([]int32, n), make([]float32, n)
	for k, e := range edges {
		from[k], to[k] = e[0], e[1]
		if architecture == GCN {
			weights[k] = float32(1 / math.Sqrt(float64(received[e[0]]*received[e[1]])))
		} else {
			weights[k] = float32(1 / float64(received[e[1]]))
		}
	}
	features := make([]float32, 0, len(g.IDs)*g.Width())
	for _, own := range g.Features {
		features = append(features, own...)
	}
	return map[string]*tensor.Tensor{nameSource: tensor.FromI32(from, n), nameTarget: tensor.FromI32(to, n),
		nameWeight:   tensor.FromF32(weights, n),
		nameFeatures: tensor.FromF32(features, len(g.IDs), g.Width())}, Size{len(g.IDs), g.Width(), n}
}
