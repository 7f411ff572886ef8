package record

import (
	"fmt"
	"reflect"
	"slices"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/notimplemented"
	"github.com/gomlx/compute/shapes"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// function is the compute.Function that GoMLX emits operators into. Its values are program.Value. Each of its
// embedded types records some operators; an operator that programs do not have is an *UnsupportedError.
type function struct {
	*values
	unary
	binary
	rows
	products
	movement
	reductions
	windows
	others
	recorder *recorder
	given    map[string]program.Value
	out      []program.Value
}

// others are the operators that no other type of a function records.
type others struct{ notimplemented.Function }

func newFunction(r *recorder, b *program.Builder, given map[string]program.Value) *function {
	v := &values{b: b, zeros: map[program.Value]bool{}}
	return &function{values: v, unary: unary{v}, binary: binary{v},
		rows:     rows{values: v, scatters: map[program.Value]scatter{}},
		products: products{values: v, dots: map[program.Value]dot{}}, movement: movement{v}, reductions: reductions{v},
		windows: windows{v}, others: others{notimplemented.Function{ErrFn: unsupported}}, recorder: r, given: given}
}

// values are the values recorded so far.
type values struct {
	b     *program.Builder
	zeros map[program.Value]bool // constants of float32 zeros, and what they are broadcast to
}

// unary records elementwise operators of one operand.
type unary struct{ *values }

// binary records elementwise operators of two operands, comparisons and a choice between two.
type binary struct{ *values }

// rows records what looks rows up and adds to them.
type rows struct {
	*values
	scatters map[program.Value]scatter // sums of rows, from zeros on
}

// products records products, and transpositions, which can be of a product.
type products struct {
	*values
	dots map[program.Value]dot
}

// movement records operators that make and move elements.
type movement struct{ *values }

// reductions records sums and extrema over axes.
type reductions struct{ *values }

// windows records convolutions and pooling.
type windows struct{ *values }

func (f *function) Builder() compute.Builder { return f.recorder }

func (f *function) Shape(v compute.Value) (shapes.Shape, error) {
	return fromShape(f.b.Shape(v.(program.Value))), nil
}

func (f *values) dims(v compute.Value) []int { return f.b.Shape(v.(program.Value)).Dims }

func (f *function) Return(outputs []compute.Value, _ []*compute.ShardingSpec) error {
	for _, v := range outputs {
		f.out = append(f.out, v.(program.Value))
	}
	return nil
}

// value passes a result of the builder on as a compute.Value.
func value(v program.Value, err error) (compute.Value, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

func (f *function) Parameter(name string, s shapes.Shape, _ *compute.ShardingSpec) (compute.Value, error) {
	shape, err := toShape(s)
	if err != nil {
		return nil, err
	}
	v, ok := f.given[name]
	if !ok {
		return f.b.Input(name, shape), nil
	}
	if got := f.b.Shape(v); !got.Equal(shape) {
		return nil, fmt.Errorf("record: parameter %q is %s, the value given for it is %s", name, shape, got)
	}
	return v, nil
}

func (f *function) Constant(flat any, dims ...int) (compute.Value, error) {
	list := reflect.ValueOf(flat)
	if list.Kind() != reflect.Slice {
		return nil, &UnsupportedError{Operator: "Constant", Why: fmt.Sprintf("%T; use a slice", flat)}
	}
	d, err := toDType(dtypes.FromGoType(list.Type().Elem()))
	if err != nil {
		return nil, &UnsupportedError{Operator: "Constant", Why: fmt.Sprintf("%T; use float32, int32 or int64", flat)}
	}
	elements := unsafe.Slice((*byte)(list.UnsafePointer()), list.Len()*d.Size())
	t, err := tensor.FromBytes(tensor.Make(d, dims...).Clone(), elements)
	if err != nil {
		return nil, fmt.Errorf("record: constant: %w", err)
	}
	v := f.b.Constant(t)
	data, ok := flat.([]float32)
	f.zeros[v] = ok && !slices.ContainsFunc(data, func(x float32) bool { return x != 0 })
	return v, nil
}

// Identity marks places in a graph, such as the end of a gradient's path; it computes nothing.
func (f *function) Identity(x compute.Value) (compute.Value, error) { return x, nil }

func (f unary) ConvertDType(x compute.Value, d dtypes.DType) (compute.Value, error) {
	to, err := toDType(d)
	if err != nil {
		return nil, err
	}
	return value(f.b.Convert(x.(program.Value), to))
}

// widened returns halves as float32, in which programs calculate, and their type to turn a result back to. Other values
// stay as they are.
func (f *values) widened(xs ...compute.Value) ([]compute.Value, tensor.DType, error) {
	half := tensor.DType(0)
	wide := slices.Clone(xs)
	for i, x := range xs {
		if d := f.b.Shape(x.(program.Value)).DType; d == tensor.Float16 || d == tensor.BFloat16 {
			v, err := f.b.Convert(x.(program.Value), tensor.Float32)
			if err != nil {
				return nil, half, err
			}
			wide[i], half = v, d
		}
	}
	return wide, half, nil
}

// narrowed converts a result to the type that widened gave.
func (f *values) narrowed(half tensor.DType, v program.Value, err error) (compute.Value, error) {
	if err == nil && half != 0 {
		v, err = f.b.Convert(v, half)
	}
	return value(v, err)
}

func (f unary) apply(k program.Kind, x compute.Value) (compute.Value, error) {
	wide, half, err := f.widened(x)
	if err != nil {
		return nil, err
	}
	v, err := f.b.Apply(k, wide[0].(program.Value))
	return f.narrowed(half, v, err)
}

func (f unary) Abs(x compute.Value) (compute.Value, error)   { return f.apply(program.Abs, x) }
func (f unary) Ceil(x compute.Value) (compute.Value, error)  { return f.apply(program.Ceil, x) }
func (f unary) Cos(x compute.Value) (compute.Value, error)   { return f.apply(program.Cos, x) }
func (f unary) Erf(x compute.Value) (compute.Value, error)   { return f.apply(program.Erf, x) }
func (f unary) Exp(x compute.Value) (compute.Value, error)   { return f.apply(program.Exp, x) }
func (f unary) Floor(x compute.Value) (compute.Value, error) { return f.apply(program.Floor, x) }
func (f unary) Log(x compute.Value) (compute.Value, error)   { return f.apply(program.Log, x) }
func (f unary) Neg(x compute.Value) (compute.Value, error)   { return f.apply(program.Neg, x) }
func (f unary) Round(x compute.Value) (compute.Value, error) { return f.apply(program.Round, x) }
func (f unary) Rsqrt(x compute.Value) (compute.Value, error) { return f.apply(program.Rsqrt, x) }
func (f unary) Sign(x compute.Value) (compute.Value, error)  { return f.apply(program.Sign, x) }
func (f unary) Sin(x compute.Value) (compute.Value, error)   { return f.apply(program.Sin, x) }
func (f unary) Sqrt(x compute.Value) (compute.Value, error)  { return f.apply(program.Sqrt, x) }
func (f unary) Tanh(x compute.Value) (compute.Value, error)  { return f.apply(program.Tanh, x) }

func (f unary) Logistic(x compute.Value) (compute.Value, error) {
	return f.apply(program.Logistic, x)
}

func (f unary) LogicalNot(x compute.Value) (compute.Value, error) {
	return f.apply(program.Not, x)
}

// broadcast stretches axes of size 1, or a scalar, to dims, which GoMLX leaves to the backend.
func (f *values) broadcast(x compute.Value, dims []int) (program.Value, error) {
	v, from := x.(program.Value), f.dims(x)
	if slices.Equal(from, dims) {
		return v, nil
	}
	return f.b.Broadcast(v, dims, span(0, len(from)))
}

// align broadcasts values to the dimensions that all of them can be stretched to.
func (f *values) align(xs ...compute.Value) ([]program.Value, error) {
	var dims []int
	for _, x := range xs {
		d := f.dims(x)
		if len(d) > len(dims) {
			dims = slices.Clone(d)
		}
		for i, n := range d {
			dims[i] = max(dims[i], n)
		}
	}
	out := make([]program.Value, len(xs))
	for i, x := range xs {
		v, err := f.broadcast(x, dims)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (f binary) apply(k program.Kind, x, y compute.Value) (compute.Value, error) {
	wide, half, err := f.widened(x, y)
	if err != nil {
		return nil, err
	}
	in, err := f.align(wide...)
	if err != nil {
		return nil, err
	}
	v, err := f.b.Apply(k, in[0], in[1])
	return f.narrowed(half, v, err)
}

// Add of rows that were summed from zeros on sums them from the other operand on: the gradient of a table that is
// looked up, and used otherwise too, then needs no second table.
func (f rows) Add(x, y compute.Value) (compute.Value, error) {
	for _, pair := range [][2]compute.Value{{x, y}, {y, x}} {
		s, ok := f.scatters[pair[1].(program.Value)]
		if ok && slices.Equal(f.dims(x), f.dims(y)) {
			return value(f.b.Apply(program.AddRows, pair[0].(program.Value), s.rows, s.updates))
		}
	}
	return binary{f.values}.apply(program.Add, x, y)
}

func (f binary) Div(x, y compute.Value) (compute.Value, error) { return f.apply(program.Div, x, y) }
func (f binary) Max(x, y compute.Value) (compute.Value, error) { return f.apply(program.Max, x, y) }
func (f binary) Min(x, y compute.Value) (compute.Value, error) { return f.apply(program.Min, x, y) }
func (f binary) Mul(x, y compute.Value) (compute.Value, error) { return f.apply(program.Mul, x, y) }
func (f binary) Pow(x, y compute.Value) (compute.Value, error) { return f.apply(program.Pow, x, y) }
func (f binary) Sub(x, y compute.Value) (compute.Value, error) { return f.apply(program.Sub, x, y) }

func (f binary) LogicalAnd(x, y compute.Value) (compute.Value, error) {
	return f.apply(program.And, x, y)
}

func (f binary) LogicalOr(x, y compute.Value) (compute.Value, error) {
	return f.apply(program.Or, x, y)
}

func (f binary) compare(k program.Kind, x, y compute.Value) (compute.Value, error) {
	wide, _, err := f.widened(x, y)
	if err != nil {
		return nil, err
	}
	v, err := f.align(wide...)
	if err != nil {
		return nil, err
	}
	return value(f.b.Apply(k, v[0], v[1]))
}

func (f binary) Equal(x, y compute.Value) (compute.Value, error) {
	return f.compare(program.Equal, x, y)
}

func (f binary) NotEqual(x, y compute.Value) (compute.Value, error) {
	return f.compare(program.NotEqual, x, y)
}

func (f binary) LessThan(x, y compute.Value) (compute.Value, error) {
	return f.compare(program.Less, x, y)
}

func (f binary) LessOrEqual(x, y compute.Value) (compute.Value, error) {
	return f.compare(program.LessEqual, x, y)
}

func (f binary) GreaterThan(x, y compute.Value) (compute.Value, error) {
	return f.compare(program.Greater, x, y)
}

func (f binary) GreaterOrEqual(x, y compute.Value) (compute.Value, error) {
	return f.compare(program.GreaterEqual, x, y)
}

func (f binary) Where(cond, x, y compute.Value) (compute.Value, error) {
	v, err := f.align(cond, x, y)
	if err != nil {
		return nil, err
	}
	return value(f.b.Apply(program.Where, v[0], v[1], v[2]))
}
