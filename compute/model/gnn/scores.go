package gnn

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model"
)

// Scores implements model.Classifier: it computes the scores of all nodes and takes those of the examples. Hidden
// layers have relu, and dropout in training.
func (n Network) Scores(p model.Parameters, examples *graph.Node) *graph.Node {
	x := p.At(nameFeatures)
	for i := range n.hidden {
		x = n.layer(p, i+1, x)
		x = p.Dropped(graph.Max(x, graph.ZerosLike(x)))
	}
	own := graph.Slice(examples, graph.AxisRange(), graph.AxisRange(0, 1))
	return graph.Gather(n.layer(p, len(n.hidden)+1, x), own)
}

// layer is layer i on x [nodes, in]. Messages are of the mapped values, which are fewer where a layer is narrow: the
// map of a sum is the sum of the maps.
func (n Network) layer(p model.Parameters, i int, x *graph.Node) *graph.Node {
	name := fmt.Sprintf("conv%d.", i)
	if n.architecture == GCN {
		return biased(received(p, mapped(x, p.At(name+"lin.weight"))), p.At(name+"bias"))
	}
	around := biased(received(p, mapped(x, p.At(name+"lin_l.weight"))), p.At(name+"lin_l.bias"))
	return graph.Add(around, mapped(x, p.At(name+"lin_r.weight")))
}

// mapped is x [nodes, in] times weight [out, in].
func mapped(x, weight *graph.Node) *graph.Node {
	return graph.DotGeneral(x, []int{1}, nil, weight, []int{1}, nil)
}

func biased(x, bias *graph.Node) *graph.Node {
	return graph.Add(x, graph.BroadcastPrefix(bias, x.Shape().Dimensions[0]))
}

// block is how many messages are sent at a time. It bounds the memory that they take, and a sum of more of them could
// not be divided into parts for a dispute.
const block = 1 << 17

// received is what each node receives along the edges, where every node sends its row of x [nodes, width].
func received(p model.Parameters, x *graph.Node) *graph.Node {
	sum, all := graph.ZerosLike(x), p.At(nameSource).Shape().Size()
	for from := 0; from < all; from += block {
		some := func(name string) *graph.Node {
			return graph.Slice(p.At(name), graph.AxisRange(from, min(from+block, all)))
		}
		sent := graph.Gather(x, graph.InsertAxes(some(nameSource), -1))
		weights := graph.ExpandAndBroadcast(some(nameWeight), sent.Shape().Dimensions, []int{1})
		sum = graph.ScatterSum(sum, graph.InsertAxes(some(nameTarget), -1), graph.Mul(sent, weights), false, false)
	}
	return sum
}
