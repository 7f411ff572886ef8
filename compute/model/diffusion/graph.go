package diffusion

import (
	"fmt"

	"github.com/gomlx/gomlx/core/graph"

	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/record"
)

// Noise implements model.Denoiser. A hidden layer adds a map of the time to its input, and has silu.
func (n Network) Noise(p model.Parameters, x, times *graph.Node) *graph.Node {
	t := n.embedded(times)
	if n.architecture == MLP {
		return n.dense(p, x, t)
	}
	return n.convolved(p, x, t)
}

// embedded is times [n] as sines and cosines of frequencies: [n, timeWidth] (Vaswani et al. 2017, section 3.5).
func (n Network) embedded(times *graph.Node) *graph.Node {
	rows := times.Shape().Dimensions[0]
	each := graph.Const(times.Graph(), frequencies())
	grid := []int{rows, timeWidth / 2}
	angles := graph.Mul(graph.ExpandAndBroadcast(graph.MulScalar(times, 1000/float64(n.timesteps)), grid, []int{1}),
		graph.ExpandAndBroadcast(each, grid, []int{0}))
	return graph.Concatenate([]*graph.Node{graph.Sin(angles), graph.Cos(angles)}, -1)
}

// linear is the layer of a name on x [n, in].
func linear(p model.Parameters, name string, x *graph.Node) *graph.Node {
	y := graph.DotGeneral(x, []int{1}, nil, p.At(name+".weight"), []int{1}, nil)
	return graph.Add(y, graph.BroadcastPrefix(p.At(name+".bias"), y.Shape().Dimensions[0]))
}

func (n Network) dense(p model.Parameters, x, times *graph.Node) *graph.Node {
	for i := range n.widths {
		name := fmt.Sprintf("layer%d", i+1)
		y := graph.Add(linear(p, name, x), linear(p, name+".time", times))
		y = p.Dropped(record.Silu(y))
		if i > 0 && n.widths[i] == n.widths[i-1] {
			y = graph.Add(x, y)
		}
		x = y
	}
	return linear(p, "out", x)
}

// convolved is a U-Net (Ronneberger et al. 2015): convolutions of ever smaller images, then of ever larger ones, which
// see those of the same size on the way down besides.
func (n Network) convolved(p model.Parameters, x, times *graph.Node) *graph.Node {
	rows, last := x.Shape().Dimensions[0], len(n.widths)-1
	x = graph.Reshape(x, rows, n.size.Rows, n.size.Columns, n.size.Channels)
	seen := make([]*graph.Node, len(n.widths))
	for i := range n.widths {
		if i > 0 {
			x = graph.MeanPool(x).Window(2).NoPadding().Done()
		}
		x = n.block(p, fmt.Sprintf("down%d", i+1), x, times)
		seen[i] = x
	}
	x = graph.Add(x, n.block(p, "middle", x, times))
	for i := last - 1; i >= 0; i-- {
		x = graph.Concatenate([]*graph.Node{doubled(x), seen[i]}, -1)
		x = n.block(p, fmt.Sprintf("up%d", i+1), x, times)
	}
	return graph.Reshape(n.convolution(p, "out", x), rows, n.Example())
}

// block is a hidden layer of a name on images, whose size stays.
func (n Network) block(p model.Parameters, name string, x, times *graph.Node) *graph.Node {
	y := n.convolution(p, name, x)
	moved := linear(p, name+".time", times)
	y = graph.Add(y, graph.ExpandAndBroadcast(moved, y.Shape().Dimensions, []int{1, 2}))
	return p.Dropped(record.Silu(y))
}

// doubled is images [n, rows, columns, channels] with each pixel four times, as a square.
func doubled(x *graph.Node) *graph.Node {
	d := x.Shape().Dimensions
	x = graph.ExpandAndBroadcast(x, []int{d[0], d[1], 2, d[2], 2, d[3]}, []int{2, 4})
	return graph.Reshape(x, d[0], 2*d[1], 2*d[2], d[3])
}

// convolution is the layer of a name on images x [n, rows, columns, channels], whose size stays.
func (n Network) convolution(p model.Parameters, name string, x *graph.Node) *graph.Node {
	around := [2]int{n.kernel / 2, n.kernel / 2}
	y := graph.ConvGeneral(x, p.At(name+".weight"), axes, nil, [][2]int{around, around}, nil, nil, 1, 1)
	return graph.Add(y, graph.ExpandAndBroadcast(p.At(name+".bias"), y.Shape().Dimensions, []int{0, 1, 2}))
}

// axes are those of images [batch, rows, columns, channels] and of kernels in the layout of PyTorch.
var axes = graph.ConvolveAxesConfig{
	InputBatch: 0, InputSpatial: []int{1, 2}, InputChannels: 3,
	KernelOutputChannels: 0, KernelInputChannels: 1, KernelSpatial: []int{2, 3},
	OutputBatch: 0, OutputSpatial: []int{1, 2}, OutputChannels: 3,
}
