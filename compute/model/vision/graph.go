package vision

import (
	"fmt"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model"
)

// middle is half of the largest value of a pixel: values are seen from -1 to 1.
const middle = 127.5

// Scores implements model.Classifier. Hidden layers have relu, and dropout in training.
func (n Network) Scores(p model.Parameters, examples *graph.Node) *graph.Node {
	x := graph.MulScalar(graph.AddScalar(graph.ConvertDType(examples, dtypes.Float32), -middle), 1/middle)
	x = n.convolved(p, x)
	for i := range n.hidden {
		x = p.Dropped(relu(dense(p, i+1, x)))
	}
	return dense(p, len(n.hidden)+1, x)
}

// convolved is images x [batch, values], after the convolutions of the network.
func (n Network) convolved(p model.Parameters, x *graph.Node) *graph.Node {
	if len(n.channels) == 0 {
		return x
	}
	batch := x.Shape().Dimensions[0]
	x = graph.Reshape(x, batch, n.size.Rows, n.size.Columns, n.size.Channels)
	around := [2]int{n.kernel / 2, n.kernel / 2}
	for i := range n.channels {
		weight, bias := p.At(fmt.Sprintf("conv%d.weight", i+1)), p.At(fmt.Sprintf("conv%d.bias", i+1))
		y := graph.ConvGeneral(x, weight, axes, nil, [][2]int{around, around}, nil, nil, 1, 1)
		y = relu(graph.Add(y, graph.ExpandAndBroadcast(bias, y.Shape().Dimensions, []int{0, 1, 2})))
		pool := graph.MaxPool(y)
		if n.mean {
			pool = graph.MeanPool(y)
		}
		x = pool.Window(2).NoPadding().Done()
	}
	return graph.Reshape(x, batch, -1)
}

// axes are those of images [batch, rows, columns, channels] and of kernels in the layout of PyTorch.
var axes = graph.ConvolveAxesConfig{
	InputBatch: 0, InputSpatial: []int{1, 2}, InputChannels: 3,
	KernelOutputChannels: 0, KernelInputChannels: 1, KernelSpatial: []int{2, 3},
	OutputBatch: 0, OutputSpatial: []int{1, 2}, OutputChannels: 3,
}

func relu(x *graph.Node) *graph.Node { return graph.Max(x, graph.ZerosLike(x)) }

// dense is layer i on x [n, in].
func dense(p model.Parameters, i int, x *graph.Node) *graph.Node {
	y := graph.DotGeneral(x, []int{1}, nil, p.At(fmt.Sprintf("fc%d.weight", i)), []int{1}, nil)
	return graph.Add(y, graph.BroadcastPrefix(p.At(fmt.Sprintf("fc%d.bias", i)), y.Shape().Dimensions[0]))
}
