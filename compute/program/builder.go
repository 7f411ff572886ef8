package program

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// Value is the index of the operator that makes a value.
type Value int32

// Builder makes a program operator by operator, each checked by the rule that Check applies, for one goroutine.
type Builder struct {
	p   Program
	err error // the first error of a method that returns none
}

// NewBuilder returns a builder of an empty program of version 1 of the numerics; Program.In gives it another one.
func NewBuilder() *Builder { return &Builder{p: Program{Numerics: kernel.Version1}} }

// Shape returns the shape of a value of this builder. Its dimensions must not be changed.
func (b *Builder) Shape(v Value) tensor.Shape {
	if v < 0 || int(v) >= len(b.p.Ops) {
		return tensor.Shape{}
	}
	return b.p.Ops[v].Out
}

// Append appends an operator after inferring the shape of its result. For the kinds whose rule needs it, op.Out is the
// wanted shape.
func (b *Builder) Append(op Operator) (Value, error) {
	for _, v := range op.In {
		if v < 0 || int(v) >= len(b.p.Ops) {
			return -1, fmt.Errorf("program: %s: %w", op.Kind, invalid("operand %d is not a value of this builder", v))
		}
	}
	out, err := infer(&op, b.p.shapes(&op), math.MaxInt)
	if err != nil {
		return -1, fmt.Errorf("program: %s: %w", op.Kind, err)
	}
	op.Out = out.Clone()
	b.p.Ops = append(b.p.Ops, op)
	return Value(len(b.p.Ops) - 1), nil
}

// source appends an operator without operands; Finish reports what is wrong with it.
func (b *Builder) source(op Operator) Value {
	v, err := b.Append(op)
	if err != nil && b.err == nil {
		b.err = err
	}
	return v
}

// Input declares a tensor given at run time.
func (b *Builder) Input(name string, s tensor.Shape) Value {
	return b.source(Operator{Kind: Input, Name: name, Out: s})
}

// Constant embeds a copy of a tensor, NaNs canonicalised.
func (b *Builder) Constant(t *tensor.Tensor) Value {
	c := t.Clone()
	c.Canonicalize()
	return b.source(Operator{Kind: Constant, Out: c.Shape, Data: c.Bytes()})
}

// Output names a value as a result. Results keep the order of the calls.
func (b *Builder) Output(name string, v Value) {
	b.p.Outputs = append(b.p.Outputs, Output{Name: name, Value: int32(v)})
}

// Finish returns the program, after Check without limits. The builder must not be used again.
func (b *Builder) Finish() (*Program, error) {
	if b.err != nil {
		return nil, b.err
	}
	if err := b.p.Check(Unlimited); err != nil {
		return nil, err
	}
	return &b.p, nil
}

// Apply applies a kind without attributes to its operands: the elementwise functions, comparisons, activations and
// numbers in 8 bits, Where, SumSquares, TakeRows, AddRows, CrossEntropy and its gradient.
func (b *Builder) Apply(k Kind, operands ...Value) (Value, error) {
	return b.Append(Operator{Kind: k, In: refs(operands...)})
}

// Convert converts the elements to another type.
func (b *Builder) Convert(x Value, d tensor.DType) (Value, error) {
	return b.Append(Operator{Kind: Convert, In: refs(x), Out: tensor.Make(d)})
}

// Reshape gives x other dimensions of the same number of elements.
func (b *Builder) Reshape(x Value, dims ...int) (Value, error) {
	return b.Append(Operator{Kind: Reshape, In: refs(x), Out: tensor.Shape{Dims: dims}})
}

// Transpose permutes dimensions: dimension i of the result is dimension perm[i] of x.
func (b *Builder) Transpose(x Value, perm ...int) (Value, error) {
	return b.Append(Operator{Kind: Transpose, In: refs(x), Ints: ints(perm)})
}

// Broadcast repeats x to dims; axes[i] is the dimension of the result that dimension i of x becomes.
func (b *Builder) Broadcast(x Value, dims, axes []int) (Value, error) {
	return b.Append(Operator{Kind: Broadcast, In: refs(x), Out: tensor.Shape{Dims: dims}, Ints: ints(axes)})
}

// Slice takes the elements start, start+stride, ... below limit of each dimension.
func (b *Builder) Slice(x Value, starts, limits, strides []int) (Value, error) {
	return b.Append(Operator{Kind: Slice, In: refs(x), Ints: ints(starts, limits, strides)})
}

// Pad surrounds x with low and high copies of the scalar fill in each dimension, and puts interior between elements.
func (b *Builder) Pad(x, fill Value, low, high, interior []int) (Value, error) {
	return b.Append(Operator{Kind: Pad, In: refs(x, fill), Ints: ints(low, high, interior)})
}

// Concat joins tensors along an axis.
func (b *Builder) Concat(axis int, xs ...Value) (Value, error) {
	return b.Append(Operator{Kind: Concat, In: refs(xs...), Ints: ints([]int{axis})})
}

// Iota makes a tensor whose elements are their index along axis.
func (b *Builder) Iota(s tensor.Shape, axis int) (Value, error) {
	return b.Append(Operator{Kind: Iota, Out: s, Ints: ints([]int{axis})})
}

// Reverse reverses the order of elements along the axes.
func (b *Builder) Reverse(x Value, axes ...int) (Value, error) {
	return b.Append(Operator{Kind: Reverse, In: refs(x), Ints: sorted(axes)})
}

// Windows lays out the windows of x: one size, stride and dilation a dimension.
func (b *Builder) Windows(x Value, sizes, strides, dilations []int) (Value, error) {
	return b.Append(Operator{Kind: Windows, In: refs(x), Ints: ints(sizes, strides, dilations)})
}

// SumWindows adds the elements x of windows to where Windows takes them from in a tensor of the given dimensions.
func (b *Builder) SumWindows(x Value, dims, sizes, strides, dilations []int) (Value, error) {
	return b.Append(Operator{Kind: SumWindows, In: refs(x), Out: tensor.Shape{Dims: dims},
		Ints: ints(sizes, strides, dilations)})
}

// Random makes words of the random stream that key, an Int64 [3] of seed, stream and index, addresses.
func (b *Builder) Random(key Value, dims ...int) (Value, error) {
	return b.Append(Operator{Kind: Random, In: refs(key), Out: tensor.Shape{Dims: dims}})
}

// Dot is the general product: contracting and batch axes of lhs pair with those of rhs.
func (b *Builder) Dot(lhs Value, lhsContract, lhsBatch []int, rhs Value, rhsContract, rhsBatch []int) (Value, error) {
	counts := []int{len(lhsContract), len(lhsBatch)}
	return b.Append(Operator{Kind: Dot, In: refs(lhs, rhs),
		Ints: ints(counts, lhsContract, lhsBatch, rhsContract, rhsBatch)})
}

// Reduce applies ReduceSum, ReduceMax, ReduceMin or FirstMax over the axes, in any order.
func (b *Builder) Reduce(k Kind, x Value, axes ...int) (Value, error) {
	return b.Append(Operator{Kind: k, In: refs(x), Ints: sorted(axes)})
}

// Moment is the next moment of x, by AdamM or AdamV.
func (b *Builder) Moment(k Kind, x, g, scale Value, beta float32) (Value, error) {
	return b.Append(Operator{Kind: k, In: refs(x, g, scale), Ints: floats(beta)})
}

// AdamP is the next parameter; c1 and c2 are the bias corrections 1/(1-beta^t).
func (b *Builder) AdamP(p, m, v, lr, c1, c2 Value, eps, weightDecay float32) (Value, error) {
	return b.Append(Operator{Kind: AdamP, In: refs(p, m, v, lr, c1, c2), Ints: floats(eps, weightDecay)})
}

// Attention applies a kind of causal attention, whose operands are q, k, then what the kind takes; query and key are
// the positions of the first of each.
func (b *Builder) Attention(k Kind, query, key int, operands ...Value) (Value, error) {
	if k < CausalAttention || k > CausalAttentionGradV {
		return -1, fmt.Errorf("program: %w", invalid("%s is not a kind of attention", k))
	}
	return b.Append(Operator{Kind: k, In: refs(operands...), Ints: ints([]int{query, key})})
}

func refs(vs ...Value) []int32 {
	in := make([]int32, len(vs))
	for i, v := range vs {
		in[i] = int32(v)
	}
	return in
}

func ints(lists ...[]int) []int64 {
	var out []int64
	for _, list := range lists {
		for _, v := range list {
			out = append(out, int64(v))
		}
	}
	return out
}

func sorted(list []int) []int64 { return slices.Sorted(slices.Values(ints(list))) }

func floats(xs ...float32) []int64 {
	out := make([]int64, len(xs))
	for i, x := range xs {
		out[i] = int64(math.Float32bits(x))
	}
	return out
}
