package record

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// scalar is a constant of the builder.
func (f *values) scalar(x float32) program.Value { return f.b.Constant(tensor.Scalar(x)) }

// Pad with negative amounts at the ends cuts them off.
func (f movement) Pad(x, fill compute.Value, axes ...compute.PadAxis) (compute.Value, error) {
	return value(f.pad(x.(program.Value), fill.(program.Value), axes))
}

func (f *values) pad(x, fill program.Value, axes []compute.PadAxis) (program.Value, error) {
	n := len(axes)
	low, high, interior := make([]int, n), make([]int, n), make([]int, n)
	starts, limits := make([]int, n), slices.Clone(f.b.Shape(x).Dims)
	var grows, cuts bool
	for i, a := range axes {
		low[i], high[i], interior[i] = max(a.Start, 0), max(a.End, 0), a.Interior
		limits[i] += (limits[i]-1)*interior[i] + low[i] + high[i] + min(a.End, 0)
		starts[i] = max(-a.Start, 0)
		grows = grows || a.Start > 0 || a.End > 0 || a.Interior > 0
		cuts = cuts || a.Start < 0 || a.End < 0
	}
	var err error
	if grows || !cuts {
		if x, err = f.b.Pad(x, fill, low, high, interior); err != nil {
			return x, err
		}
	}
	if cuts {
		x, err = f.b.Slice(x, starts, limits, each(1, n))
	}
	return x, err
}

// each returns a list of n times v.
func each(v, n int) []int { return slices.Repeat([]int{v}, n) }

// orEach returns list, or n times v if there is none: GoMLX leaves out what is the default.
func orEach(list []int, v, n int) []int {
	if len(list) > 0 {
		return list
	}
	return each(v, n)
}

// surround pads x with fill: paddings around each axis, dilations-1 elements between those of x.
func (f windows) surround(x compute.Value, fill float32, paddings [][2]int, dilations []int) (program.Value, error) {
	axes := make([]compute.PadAxis, len(f.dims(x)))
	for i := range axes {
		if len(paddings) > 0 {
			axes[i].Start, axes[i].End = paddings[i][0], paddings[i][1]
		}
		if len(dilations) > 0 {
			axes[i].Interior = dilations[i] - 1
		}
	}
	if !slices.ContainsFunc(axes, func(a compute.PadAxis) bool { return a != compute.PadAxis{} }) {
		return x.(program.Value), nil
	}
	return f.pad(x.(program.Value), f.scalar(fill), axes)
}

// ConvGeneral is a product over windows: an element accumulates, as Dot specifies, over the axes of the kernel in their
// order, input channels last.
func (f windows) ConvGeneral(input, kernel compute.Value, axes compute.ConvolveAxesConfig, strides []int,
	paddings [][2]int, inputDilations, kernelDilations []int, channelGroups, batchGroups int) (compute.Value, error) {
	rank := len(f.dims(input))
	if channelGroups > 1 || batchGroups > 1 || rank > tensor.MaxRank/2 {
		return nil, &UnsupportedError{Operator: "ConvGeneral",
			Why: fmt.Sprintf("%d channel groups, %d batch groups, %d axes; "+
				"only one group and at most %d axes are supported", channelGroups, batchGroups, rank, tensor.MaxRank/2)}
	}
	sizes, steps, dilations := each(1, rank), each(1, rank), each(1, rank)
	around, between := make([][2]int, rank), each(1, rank)
	for i, axis := range axes.InputSpatial {
		sizes[axis] = f.dims(kernel)[axes.KernelSpatial[i]]
		steps[axis] = orEach(strides, 1, rank)[i]
		dilations[axis] = orEach(kernelDilations, 1, rank)[i]
		between[axis] = orEach(inputDilations, 1, rank)[i]
		if len(paddings) > 0 {
			around[axis] = paddings[i]
		}
	}
	wide, half, err := f.factors("ConvGeneral", input, kernel)
	if err != nil {
		return nil, err
	}
	x, err := f.surround(wide[0], 0, around, between)
	if err != nil {
		return nil, err
	}
	if x, err = f.b.Windows(x, sizes, steps, dilations); err != nil {
		return nil, err
	}
	// The windows have size 1 along the batch and the channels: leave only the spatial sizes, in the order of the kernel.
	dims := slices.Clone(f.b.Shape(x).Dims[:rank])
	perm := span(0, rank)
	for _, axis := range axes.InputSpatial {
		dims, perm = append(dims, sizes[axis]), append(perm, rank+axis)
	}
	if x, err = f.b.Transpose(x, append(perm, rank+axes.InputBatch, rank+axes.InputChannels)...); err != nil {
		return nil, err
	}
	if x, err = f.b.Reshape(x, dims...); err != nil {
		return nil, err
	}
	contract := append(span(rank, len(dims)), axes.InputChannels)
	x, err = f.b.Dot(x, contract, nil, wide[1].(program.Value),
		append(slices.Clone(axes.KernelSpatial), axes.KernelInputChannels), nil)
	if err != nil {
		return nil, err
	}
	x, err = f.b.Transpose(x, outputAxes(axes, rank)...)
	return f.narrowed(half, x, err)
}

// outputAxes says which axis of the product each axis of the result of a convolution is: the product has the axes of
// the input but for the channels, then the output channels.
func outputAxes(axes compute.ConvolveAxesConfig, rank int) []int {
	at := func(input int) int {
		if input > axes.InputChannels {
			return input - 1
		}
		return input
	}
	perm := make([]int, rank)
	perm[axes.OutputBatch], perm[axes.OutputChannels] = at(axes.InputBatch), rank-1
	for i, axis := range axes.InputSpatial {
		perm[axes.OutputSpatial[i]] = at(axis)
	}
	return perm
}

// pool lays out the windows of a pooling, padded with fill.
func (f windows) pool(x compute.Value, fill float32, sizes, strides, inputDilations, dilations []int,
	paddings [][2]int) (program.Value, error) {
	v, err := f.surround(x, fill, paddings, inputDilations)
	if err != nil {
		return v, err
	}
	if len(strides) == 0 {
		strides = sizes
	}
	return f.b.Windows(v, sizes, strides, orEach(dilations, 1, len(sizes)))
}

// ReduceWindow reduces windows of float32 to their sum, maximum or minimum.
func (f windows) ReduceWindow(x compute.Value, kind compute.ReduceOpType, sizes, strides, inputDilations,
	dilations []int,
	paddings [][2]int) (compute.Value, error) {
	reduce, fill := program.ReduceSum, float32(0)
	switch kind {
	case compute.ReduceOpSum:
	case compute.ReduceOpMax:
		reduce, fill = program.ReduceMax, float32(math.Inf(-1))
	case compute.ReduceOpMin:
		reduce, fill = program.ReduceMin, float32(math.Inf(1))
	default:
		return nil, &UnsupportedError{Operator: "ReduceWindow", Why: kind.String() + "; use a sum, a maximum or a minimum"}
	}
	v, err := f.pool(x, fill, sizes, strides, inputDilations, dilations, paddings)
	if err != nil {
		return nil, err
	}
	return value(f.b.Reduce(reduce, v, span(len(sizes), 2*len(sizes))...))
}

// SelectAndScatterMax is the gradient of a maximum over windows: each element of source is added to the first largest
// element of its window.
func (f windows) SelectAndScatterMax(x, source compute.Value, sizes, strides []int,
	paddings [][2]int) (compute.Value, error) {
	rank := len(sizes)
	w, err := f.pool(x, float32(math.Inf(-1)), sizes, strides, nil, nil, paddings)
	if err != nil {
		return nil, err
	}
	first, err := f.b.Reduce(program.FirstMax, w, span(rank, 2*rank)...)
	if err != nil {
		return nil, err
	}
	all := f.b.Shape(w).Dims
	spread, err := f.b.Broadcast(source.(program.Value), all, span(0, rank))
	if err != nil {
		return nil, err
	}
	zero, err := f.b.Broadcast(f.scalar(0), all, nil)
	if err != nil {
		return nil, err
	}
	chosen, err := f.b.Apply(program.Where, first, spread, zero)
	if err != nil {
		return nil, err
	}
	dims, back := slices.Clone(f.dims(x)), make([]compute.PadAxis, rank)
	for i := range paddings {
		dims[i] += paddings[i][0] + paddings[i][1]
		back[i] = compute.PadAxis{Start: -paddings[i][0], End: -paddings[i][1]}
	}
	if len(strides) == 0 {
		strides = sizes
	}
	sum, err := f.b.SumWindows(chosen, dims, sizes, strides, each(1, rank))
	if err != nil || len(paddings) == 0 {
		return value(sum, err)
	}
	return value(f.pad(sum, f.scalar(0), back))
}
