package model

import (
	"fmt"
	"math"

	"github.com/gomlx/gomlx/core/graph"
)

// CNN classifies images: for each entry of Channels a convolution that keeps rows and columns, relu, and pooling that
// halves them; then an MLP with one hidden layer.
type CNN struct {
	Rows, Columns, Colours int   // of an image: x is [batch, rows, columns, colours]
	Channels               []int // of the convolutions
	Kernel                 int   // rows and columns of each convolution: odd
	MeanPool               bool  // pools by the mean, not the maximum
	Hidden, Classes        int
	Dropout                float64 // share of the hidden units that a training step zeroes
}

func (m CNN) check() error {
	list := append([]int{m.Rows, m.Columns, m.Colours, m.Kernel, m.Hidden, m.Classes}, m.Channels...)
	if err := sizes("CNN", list...); err != nil {
		return err
	}
	if m.Kernel%2 == 0 {
		return fmt.Errorf("%w: CNN with a kernel of %d; it must be odd", ErrStep, m.Kernel)
	}
	if rows, columns := m.pooled(); rows < 1 || columns < 1 {
		return fmt.Errorf("%w: CNN that pools %d x %d pixels %d times; use fewer convolutions", ErrStep, m.Rows, m.Columns, len(m.Channels))
	}
	return rate("CNN", m.Dropout)
}

// pooled are the rows and columns after the last pooling.
func (m CNN) pooled() (rows, columns int) {
	n := min(len(m.Channels), 62)
	return m.Rows >> n, m.Columns >> n
}

func (m CNN) features() []int { return []int{m.Rows, m.Columns, m.Colours} }

// top is the part after the convolutions, on rows, columns and channels in this order.
func (m CNN) top() MLP {
	rows, columns := m.pooled()
	channels := append([]int{m.Colours}, m.Channels...)
	return MLP{Inputs: rows * columns * channels[len(channels)-1], Hidden: []int{m.Hidden}, Classes: m.Classes, Dropout: m.Dropout}
}

// Tensors are "conv<i>.weight" [out, in, kernel, kernel] and "conv<i>.bias" [out], i from 1, then those of the MLP.
func (m CNN) Tensors() (list []Named) {
	in := m.Colours
	for i, out := range m.Channels {
		name := fmt.Sprintf("conv%d", i+1)
		std := math.Sqrt(2 / float64(in*m.Kernel*m.Kernel))
		list = append(list, normal(std, name+".weight", out, in, m.Kernel, m.Kernel), zeros(name+".bias", out))
		in = out
	}
	return append(list, m.top().Tensors()...)
}

func (m CNN) dropouts(batch int) []dropout { return m.top().dropouts(batch) }

func (m CNN) scores(w weights, x *graph.Node, masks []*graph.Node) *graph.Node {
	for i := range m.Channels {
		x = m.block(w.under(fmt.Sprintf("conv%d.", i+1)), x)
	}
	return m.top().scores(w, graph.Reshape(x, dims(x)[0], -1), masks)
}

// imageAxes are those of images [batch, rows, columns, channels] and of kernels as PyTorch lays them out.
var imageAxes = graph.ConvolveAxesConfig{
	InputBatch: 0, InputSpatial: []int{1, 2}, InputChannels: 3,
	KernelOutputChannels: 0, KernelInputChannels: 1, KernelSpatial: []int{2, 3},
	OutputBatch: 0, OutputSpatial: []int{1, 2}, OutputChannels: 3,
}

func (m CNN) block(w weights, x *graph.Node) *graph.Node {
	around := [2]int{m.Kernel / 2, m.Kernel / 2}
	y := graph.ConvGeneral(x, w.at("weight"), imageAxes, nil, [][2]int{around, around}, nil, nil, 1, 1)
	y = relu(graph.Add(y, graph.ExpandAndBroadcast(w.at("bias"), dims(y), []int{0, 1, 2})))
	pool := graph.MaxPool(y)
	if m.MeanPool {
		pool = graph.MeanPool(y)
	}
	return pool.Window(2).NoPadding().Done()
}
