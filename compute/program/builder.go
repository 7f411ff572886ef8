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

// Builder makes a program operator by operator, each checked by the rule that Verify applies. A builder is for one
// goroutine.
type Builder struct {
	p   Program
	err error // the first error of a method that returns none
}

// NewBuilder returns a builder of an empty program for this build's kernel.Version.
func NewBuilder() *Builder { return &Builder{p: Program{Numerics: kernel.Version}} }

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

// Finish returns the program, after the checks of Verify that do not concern limits. The builder must not be used
// again.
func (b *Builder) Finish() (*Program, error) {
	if b.err != nil {
		return nil, b.err
	}
	if err := b.p.check(Unlimited); err != nil {
		return nil, err
	}
	return &b.p, nil
}

// Unary applies an elementwise kind of one operand.
func (b *Builder) Unary(k Kind, x Value) (Value, error) {
	if k < Identity || k > Not {
		return -1, fmt.Errorf("program: %w", invalid("%s is not a unary kind", k))
	}
	return b.Append(Operator{Kind: k, In: refs(x)})
}

// Convert converts the elements to another type.
func (b *Builder) Convert(x Value, d tensor.DType) (Value, error) {
	return b.Append(Operator{Kind: Convert, In: refs(x), Out: tensor.Make(d)})
}

// Binary applies an elementwise kind of two operands of equal shape.
func (b *Builder) Binary(k Kind, x, y Value) (Value, error) {
	if k < Add || k > Or {
		return -1, fmt.Errorf("program: %w", invalid("%s is not a binary kind", k))
	}
	return b.Append(Operator{Kind: k, In: refs(x, y)})
}

// Compare applies a comparison to two operands of equal shape; the result is Bool.
func (b *Builder) Compare(k Kind, x, y Value) (Value, error) {
	if k < Equal || k > GreaterEqual {
		return -1, fmt.Errorf("program: %w", invalid("%s is not a comparison", k))
	}
	return b.Append(Operator{Kind: k, In: refs(x, y)})
}

// Where selects from x where cond holds, else from y.
func (b *Builder) Where(cond, x, y Value) (Value, error) {
	return b.Append(Operator{Kind: Where, In: refs(cond, x, y)})
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

// FirstMax marks the element that ReduceMax over the axes takes.
func (b *Builder) FirstMax(x Value, axes ...int) (Value, error) { return b.reduce(FirstMax, x, axes) }

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

// ReduceSum sums over the axes, which are removed.
func (b *Builder) ReduceSum(x Value, axes ...int) (Value, error) { return b.reduce(ReduceSum, x, axes) }

// ReduceMax takes the maximum over the axes, which are removed.
func (b *Builder) ReduceMax(x Value, axes ...int) (Value, error) { return b.reduce(ReduceMax, x, axes) }

// ReduceMin takes the minimum over the axes, which are removed.
func (b *Builder) ReduceMin(x Value, axes ...int) (Value, error) { return b.reduce(ReduceMin, x, axes) }

func (b *Builder) reduce(k Kind, x Value, axes []int) (Value, error) {
	return b.Append(Operator{Kind: k, In: refs(x), Ints: sorted(axes)})
}

// SumSquares sums the squares of all elements of x into a scalar.
func (b *Builder) SumSquares(x Value) (Value, error) {
	return b.Append(Operator{Kind: SumSquares, In: refs(x)})
}

// TakeRows picks rows of table [R, C...] by indices [I...] into [I..., C...].
func (b *Builder) TakeRows(table, indices Value) (Value, error) {
	return b.Append(Operator{Kind: TakeRows, In: refs(table, indices)})
}

// AddRows adds updates [I..., C...] to the rows of base [R, C...] given by indices [I...], in order.
func (b *Builder) AddRows(base, indices, updates Value) (Value, error) {
	return b.Append(Operator{Kind: AddRows, In: refs(base, indices, updates)})
}

// AdamM is the next first moment.
func (b *Builder) AdamM(m, g, scale Value, beta1 float32) (Value, error) {
	return b.Append(Operator{Kind: AdamM, In: refs(m, g, scale), Ints: floats(beta1)})
}

// AdamV is the next second moment.
func (b *Builder) AdamV(v, g, scale Value, beta2 float32) (Value, error) {
	return b.Append(Operator{Kind: AdamV, In: refs(v, g, scale), Ints: floats(beta2)})
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

// Activation applies Gelu or Silu to x, or their gradients to x and d.
func (b *Builder) Activation(k Kind, operands ...Value) (Value, error) {
	if k < Gelu || k > SiluGrad {
		return -1, fmt.Errorf("program: %w", invalid("%s is not an activation", k))
	}
	return b.Append(Operator{Kind: k, In: refs(operands...)})
}

// Quantize turns x into Int8 by scales of the same dimensions.
func (b *Builder) Quantize(x, scale Value) (Value, error) {
	return b.Append(Operator{Kind: Quantize, In: refs(x, scale)})
}

// Dequantize turns Int8 codes back into float32 by their scales.
func (b *Builder) Dequantize(codes, scale Value) (Value, error) {
	return b.Append(Operator{Kind: Dequantize, In: refs(codes, scale)})
}

// CrossEntropy is the loss of rows of logits [n, classes] with the targets [n].
func (b *Builder) CrossEntropy(logits, targets Value) (Value, error) {
	return b.Append(Operator{Kind: CrossEntropy, In: refs(logits, targets)})
}

// CrossEntropyGrad is the gradient of CrossEntropy for the logits, the rows times d [n].
func (b *Builder) CrossEntropyGrad(logits, targets, d Value) (Value, error) {
	return b.Append(Operator{Kind: CrossEntropyGrad, In: refs(logits, targets, d)})
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
