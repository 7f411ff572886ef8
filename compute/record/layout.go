package record

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

func (f movement) Reshape(x compute.Value, dims ...int) (compute.Value, error) {
	return value(f.b.Reshape(x.(program.Value), dims...))
}

// Transpose of a product takes the product with its sides exchanged if that leaves the axis that ends up last in place:
// the same multiplications in the same order, and less to move. The gradient of a dense layer then moves nothing.
func (f products) Transpose(x compute.Value, perm ...int) (compute.Value, error) {
	v := x.(program.Value)
	d, ok := f.dots[v]
	if ok && d.rank > 0 && perm[d.rank-1] < d.middle {
		var err error
		if v, err = f.b.Dot(d.y, d.yContract, d.yBatch, d.x, d.xContract, d.xBatch); err != nil {
			return nil, err
		}
		axes := d.exchanged()
		perm = slices.Clone(perm)
		for i, axis := range perm {
			perm[i] = slices.Index(axes, axis)
		}
	}
	return value(f.b.Transpose(v, perm...))
}

func (f movement) BroadcastInDim(x compute.Value, s shapes.Shape, axes []int) (compute.Value, error) {
	v, err := f.b.Broadcast(x.(program.Value), s.Dimensions, axes)
	f.zeros[v] = err == nil && f.zeros[x.(program.Value)]
	return value(v, err)
}

func (f movement) Slice(x compute.Value, starts, limits, strides []int) (compute.Value, error) {
	if strides == nil {
		strides = slices.Repeat([]int{1}, len(starts))
	}
	return value(f.b.Slice(x.(program.Value), starts, limits, strides))
}

func (f movement) Concatenate(axis int, xs ...compute.Value) (compute.Value, error) {
	parts := make([]program.Value, len(xs))
	for i, x := range xs {
		parts[i] = x.(program.Value)
	}
	return value(f.b.Concat(axis, parts...))
}

func (f movement) Iota(s shapes.Shape, axis int) (compute.Value, error) {
	shape, err := toShape(s)
	if err != nil {
		return nil, err
	}
	half := shape.DType
	if half != tensor.Float16 && half != tensor.BFloat16 {
		return value(f.b.Iota(shape, axis))
	}
	v, err := f.b.Iota(tensor.Make(tensor.Float32, shape.Dims...), axis)
	return f.narrowed(half, v, err)
}

func (f movement) Reverse(x compute.Value, axes ...int) (compute.Value, error) {
	return value(f.b.Reverse(x.(program.Value), axes...))
}

// every returns axes, or all axes of x if there are none.
func (f reductions) every(x compute.Value, axes []int) []int {
	if len(axes) > 0 {
		return axes
	}
	return span(0, len(f.dims(x)))
}

func (f reductions) reduce(k program.Kind, x compute.Value, axes []int) (compute.Value, error) {
	wide, half, err := f.widened(x)
	if err != nil {
		return nil, err
	}
	v, err := f.b.Reduce(k, wide[0].(program.Value), f.every(x, axes)...)
	return f.narrowed(half, v, err)
}

func (f reductions) ReduceSum(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(program.ReduceSum, x, axes)
}

func (f reductions) ReduceMax(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(program.ReduceMax, x, axes)
}

func (f reductions) ReduceMin(x compute.Value, axes ...int) (compute.Value, error) {
	return f.reduce(program.ReduceMin, x, axes)
}

// dot is a recorded product, whose axes are those of the batch, then up to middle the free ones of x, then those of y.
type dot struct {
	x, y                                 program.Value
	xContract, xBatch, yContract, yBatch []int
	middle, rank                         int
}

// exchanged returns, for each axis of the product of y and x, the same axis of the product of x and y.
func (d dot) exchanged() []int {
	return slices.Concat(span(0, len(d.xBatch)), span(d.middle, d.rank), span(len(d.xBatch), d.middle))
}

// factors returns what a product multiplies, halves widened, and the type of its result if that is a half.
func (f *values) factors(operator string, x, y compute.Value) ([]compute.Value, tensor.DType, error) {
	wide, half, err := f.widened(x, y)
	if err != nil {
		return nil, 0, err
	}
	for _, v := range wide {
		if d := f.b.Shape(v.(program.Value)).DType; d != tensor.Float32 {
			return nil, 0, &UnsupportedError{Operator: operator, Why: "products are of float32, not " + d.String()}
		}
	}
	return wide, half, nil
}

// DotGeneral accumulates in float32, also where halves would do.
func (f products) DotGeneral(x compute.Value, xContract, xBatch []int, y compute.Value, yContract, yBatch []int,
	config compute.DotGeneralConfig) (compute.Value, error) {
	if config.AccumulatorDType == dtypes.Float64 {
		return nil, &UnsupportedError{Operator: "DotGeneral", Why: "products accumulate in float32"}
	}
	wide, result, err := f.factors("DotGeneral", x, y)
	if err != nil {
		return nil, err
	}
	if config.OutputDType != dtypes.InvalidDType {
		if result, err = toDType(config.OutputDType); err != nil {
			return nil, err
		}
	}
	d := dot{x: wide[0].(program.Value), y: wide[1].(program.Value), xContract: xContract, xBatch: xBatch,
		yContract: yContract, yBatch: yBatch}
	v, err := f.b.Dot(d.x, xContract, xBatch, d.y, yContract, yBatch)
	if err != nil {
		return nil, err
	}
	d.middle, d.rank = len(f.dims(x))-len(xContract), len(f.dims(v))
	f.dots[v] = d
	if result == tensor.Float32 {
		result = 0
	}
	return f.narrowed(result, v, nil)
}

// Gather is supported in the form of an embedding lookup: whole rows of table along axis 0, one per index.
func (f rows) Gather(table, indices compute.Value, indexAxis int, offsetAxes, collapsed, indexMap,
	sliceSizes []int,
	_ bool) (compute.Value, error) {
	dims, at := f.dims(table), f.dims(indices)
	outer := len(at) - 1
	row := append([]int{1}, dims[min(1, len(dims)):]...)
	if !oneRow(at, indexAxis, collapsed, indexMap) || !slices.Equal(sliceSizes, row) ||
		!slices.Equal(offsetAxes, span(outer, outer+len(dims)-1)) {
		return nil, &UnsupportedError{Operator: "Gather", Why: "only whole rows along axis 0 can be looked up"}
	}
	rows, err := f.b.Reshape(indices.(program.Value), at[:outer]...)
	if err != nil {
		return nil, err
	}
	return value(f.b.Apply(program.TakeRows, table.(program.Value), rows))
}

// ScatterSum is supported in the form of the gradient of an embedding lookup: whole rows added along axis 0.
func (f rows) ScatterSum(base, indices, updates compute.Value, indexAxis int, windowAxes, inserted, indexMap []int,
	_, _ bool) (compute.Value, error) {
	dims, at := f.dims(base), f.dims(indices)
	outer := len(at) - 1
	if !oneRow(at, indexAxis, inserted, indexMap) || !slices.Equal(windowAxes, span(outer, outer+len(dims)-1)) {
		return nil, &UnsupportedError{Operator: "ScatterSum", Why: "only whole rows along axis 0 can be added to"}
	}
	rows, err := f.b.Reshape(indices.(program.Value), at[:outer]...)
	if err != nil {
		return nil, err
	}
	v, err := f.b.Apply(program.AddRows, base.(program.Value), rows, updates.(program.Value))
	if err == nil && f.zeros[base.(program.Value)] {
		f.scatters[v] = scatter{rows, updates.(program.Value)}
	}
	return value(v, err)
}

// scatter is updates that are added to the given rows of zeros.
type scatter struct{ rows, updates program.Value }

// oneRow reports whether indices of the given dimensions address axis 0, and nothing else, by their last axis.
func oneRow(indices []int, indexAxis int, collapsed, indexMap []int) bool {
	last := len(indices) - 1
	return last >= 0 && indexAxis == last && indices[last] == 1 &&
		slices.Equal(collapsed, []int{0}) && slices.Equal(indexMap, []int{0})
}

// span returns lo, lo+1, ..., hi-1.
func span(lo, hi int) []int {
	s := make([]int, max(0, hi-lo))
	for i := range s {
		s[i] = lo + i
	}
	return s
}
