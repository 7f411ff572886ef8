package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/record"
	"github.com/starling-network/starling/compute/tensor"
)

// GraphNet classifies the nodes of a graph from their features and those of their neighbours: GCN (Kipf and Welling
// 2017) or, with Sage, GraphSAGE with the mean of the neighbours (Hamilton et al. 2017). Layers have relu and dropout
// between them.
type GraphNet struct {
	Sage                    bool // a node's own features have weights of their own
	Inputs, Hidden, Classes int
	Layers                  int
	Dropout                 float64 // share of the hidden units that a training step zeroes
}

const maxGraph = 1 << 26 // nodes, and edges

func (m GraphNet) check(nodes, edges int) error {
	if err := sizes("graph network", m.Inputs, m.Hidden, m.Classes); err != nil {
		return err
	}
	if m.Layers < 1 || m.Layers > maxLayers || nodes < 1 || nodes > maxGraph || edges < 1 || edges > maxGraph {
		return fmt.Errorf("%w: graph network of %d layers on %d nodes and %d edges; at least 1 of each, at most %d layers and %d of the others",
			ErrStep, m.Layers, nodes, edges, maxLayers, maxGraph)
	}
	return rate("graph network", m.Dropout)
}

// width returns what layer i, from 1, maps from and to.
func (m GraphNet) width(i int) (in, out int) {
	in, out = m.Hidden, m.Hidden
	if i == 1 {
		in = m.Inputs
	}
	if i == m.Layers {
		out = m.Classes
	}
	return in, out
}

// Tensors are, for each layer i from 1, "conv<i>.weight" [out, in] for the sum over neighbours, "conv<i>.self" of the
// same shape with Sage, and "conv<i>.bias" [out].
func (m GraphNet) Tensors() (list []Named) {
	for i := 1; i <= m.Layers; i++ {
		in, out := m.width(i)
		std, name := math.Sqrt(2/float64(in+out)), fmt.Sprintf("conv%d.", i)
		list = append(list, normal(std, name+"weight", out, in))
		if m.Sage {
			list = append(list, normal(std, name+"self", out, in))
		}
		list = append(list, zeros(name+"bias", out))
	}
	return list
}

// ClassifyNodes is the task of naming the class of nodes of a graph. Batch: "x" float32 [nodes, inputs]; the edges
// "from" and "to" int32 [edges] with "weight" float32 [edges], as GCNEdges and MeanEdges make them; "y" int32 [nodes];
// "mask" float32 [nodes], 1 for the nodes that count and 0 for the others. The sum over the neighbours of a node adds
// the rounded products of weight and feature in the order of the edges. The loss is the mean cross-entropy in nats, and
// the metric "accuracy" the share of right answers, over the nodes that count.
func ClassifyNodes(m GraphNet, nodes, edges int) (Task, error) {
	if err := m.check(nodes, edges); err != nil {
		return Task{}, err
	}
	list := func(d tensor.DType, name string, dims ...int) Named {
		return Named{Name: name, Shape: tensor.Make(d, dims...)}
	}
	t := Task{
		Batch: []Named{list(tensor.Float32, "x", nodes, m.Inputs), list(tensor.Int32, "from", edges), list(tensor.Int32, "to", edges),
			list(tensor.Float32, "weight", edges), list(tensor.Int32, "y", nodes), list(tensor.Float32, "mask", nodes)},
		Trained: m.Tensors(), Metrics: []string{"accuracy"},
	}
	if m.Dropout > 0 {
		for range m.Layers - 1 {
			t.dropout = append(t.dropout, dropout{m.Dropout, []int{nodes, m.Hidden}})
		}
	}
	t.loss = func(w weights, in, masks []*graph.Node) []*graph.Node {
		scores := m.scores(w, in[0], edgeList{in[1], in[2], in[3]}, masks)
		return []*graph.Node{mean(record.CrossEntropy(scores, in[4]), in[5]), mean(hits(scores, in[4]), in[5])}
	}
	return t, nil
}

func (m GraphNet) scores(w weights, x *graph.Node, e edgeList, masks []*graph.Node) *graph.Node {
	for i := 1; i <= m.Layers; i++ {
		layer := w.under(fmt.Sprintf("conv%d.", i))
		y := e.sum(linear(x, layer.at("weight")))
		if m.Sage {
			y = graph.Add(y, linear(x, layer.at("self")))
		}
		x = graph.Add(y, down(layer.at("bias"), y))
		if i < m.Layers {
			x = drop(relu(x), masks, i-1, m.Dropout)
		}
	}
	return x
}

// edgeList are weighted edges, as nodes of a program.
type edgeList struct{ from, to, weight *graph.Node }

// sum gives each node the weighted sum of the rows of x [nodes, n] along the edges that end at it.
func (e edgeList) sum(x *graph.Node) *graph.Node {
	messages := lookup(x, e.from)
	messages = graph.Mul(messages, across(e.weight, messages))
	return graph.ScatterSum(graph.ZerosLike(x), graph.InsertAxes(e.to, -1), messages, false, false)
}

// GCNEdges returns the edges of an undirected graph with a loop at each node, sorted by target, then source, and the
// weights 1/sqrt(degree(from)*degree(to)) of the renormalised adjacency (Kipf and Welling 2017, section 2.2). A pair
// given twice counts once. Pairs must be of nodes in 0..nodes-1.
func GCNEdges(nodes int, pairs [][2]int32) (from, to []int32, weight []float32, err error) {
	loops := make([][2]int32, 0, 2*len(pairs)+nodes)
	for i := range nodes {
		loops = append(loops, [2]int32{int32(i), int32(i)})
	}
	from, to, degree, err := neighbours(nodes, loops, pairs)
	for k := range from {
		weight = append(weight, float32(1/math.Sqrt(float64(degree[from[k]]*degree[to[k]]))))
	}
	return from, to, weight, err
}

// MeanEdges returns the edges of an undirected graph, sorted by target, then source, with the weight 1/degree(to). A
// pair given twice counts once. Pairs must be of nodes in 0..nodes-1.
func MeanEdges(nodes int, pairs [][2]int32) (from, to []int32, weight []float32, err error) {
	from, to, degree, err := neighbours(nodes, nil, pairs)
	for _, v := range to {
		weight = append(weight, float32(1/float64(degree[v])))
	}
	return from, to, weight, err
}

// neighbours lists all edges in both directions, each once, and the number of edges that end at each node.
func neighbours(nodes int, edges, pairs [][2]int32) (from, to []int32, degree []int, err error) {
	for _, p := range pairs {
		if min(p[0], p[1]) < 0 || int(max(p[0], p[1])) >= nodes {
			return nil, nil, nil, fmt.Errorf("%w: edge %d-%d in a graph of %d nodes; nodes are numbered from 0", ErrStep, p[0], p[1], nodes)
		}
		edges = append(edges, p, [2]int32{p[1], p[0]})
	}
	slices.SortFunc(edges, func(a, b [2]int32) int { return cmp.Or(cmp.Compare(a[1], b[1]), cmp.Compare(a[0], b[0])) })
	degree = make([]int, nodes)
	for _, e := range slices.Compact(edges) {
		from, to = append(from, e[0]), append(to, e[1])
		degree[e[1]]++
	}
	return from, to, degree, nil
}
