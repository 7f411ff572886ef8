package program

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
)

// Kind says what an operator computes. The numbers are part of the format: they are only ever appended to.
//
// Conventions of every kind: floats are IEEE-754 binary32, every product and sum is rounded on its own (except inside
// Dot, which uses fused multiply-add), subnormals are kept, rounding is to nearest, ties to even. An operator whose
// float result is not a number yields some NaN; which one is never observable, because hashed and returned values have
// NaNs canonicalised. Integers wrap around. "Equal shapes" means equal dimensions: there is no implicit broadcast.
type Kind uint8

// Sources.
const (
	Input    Kind = 1 // a tensor given at run time under Name
	Constant Kind = 2 // the little-endian bytes Data; Bool bytes are 0 or 1, NaNs are canonical
	Iota     Kind = 3 // Ints [axis]: every element is its index along axis, converted to the type of Out
	// Random takes an Int64 [3] key of seed, stream and index to Uint32 of the dimensions of Out: element i is word i%4 of
	// philox.Block(seed, stream, index+i/4), the sum wrapping around.
	Random Kind = 4
)

// Elementwise functions of one operand.
const (
	Identity Kind = 10
	Neg      Kind = 11 // numbers; floats flip the sign bit
	Abs      Kind = 12 // numbers; the smallest integer stays as it is
	Sign     Kind = 13 // numbers; -1, 0 or 1; floats keep -0, +0 and NaN
	Exp      Kind = 14 // float32, as Exp of elementary.Scalars
	Log      Kind = 15 // float32, as Log of elementary.Scalars
	Tanh     Kind = 16 // float32, as Tanh of elementary.Scalars
	Erf      Kind = 17 // float32, as Erf of elementary.Scalars
	Logistic Kind = 18 // float32, as Logistic of elementary.Scalars
	Sqrt     Kind = 19 // float32, correctly rounded; NaN below zero
	Rsqrt    Kind = 20 // float32, as Rsqrt of elementary.Scalars
	Sin      Kind = 21 // float32, as Sin of elementary.Scalars
	Cos      Kind = 22 // float32, as Cos of elementary.Scalars
	Floor    Kind = 23 // float32
	Ceil     Kind = 24 // float32
	Round    Kind = 25 // float32, to the nearest integer, ties to even
	Not      Kind = 26 // bool
	// Convert takes any type to the type of Out, as kernel.FloatTo, kernel.Convert, kernel.Truth and kernel.ToFloat16 say;
	// between a half and another type by way of float32.
	Convert Kind = 27
)

// Elementwise functions of two operands of equal shape.
const (
	Add Kind = 40 // numbers
	Sub Kind = 41 // numbers
	Mul Kind = 42 // numbers
	Div Kind = 43 // numbers; integers truncate toward zero, and x/0 is 0
	Max Kind = 44 // numbers; NaN if either is NaN; max(-0, +0) is +0
	Min Kind = 45 // numbers; NaN if either is NaN; min(-0, +0) is -0
	Pow Kind = 46 // float32, as Pow of elementary.Scalars
	And Kind = 47 // bool
	Or  Kind = 48 // bool
)

// Elementwise comparisons of two operands of equal shape, to Bool. Every comparison with NaN is false, except NotEqual.
const (
	Equal        Kind = 60 // numbers and bool
	NotEqual     Kind = 61 // numbers and bool
	Less         Kind = 62 // numbers
	LessEqual    Kind = 63 // numbers
	Greater      Kind = 64 // numbers
	GreaterEqual Kind = 65 // numbers
)

// Where takes (cond Bool, x, y) of equal dimensions: x where cond holds, else y. Any type.
const Where Kind = 70

// Movement of elements, of any type.
const (
	Reshape   Kind = 80 // to the dimensions of Out, row-major order kept
	Transpose Kind = 81 // Ints perm: dimension i of the result is dimension perm[i] of the operand
	Broadcast Kind = 82 // Ints axes: dimension i of the operand becomes axes[i] of Out, repeated if it is 1
	Slice     Kind = 83 // Ints starts, limits, strides: one of each a dimension
	Pad       Kind = 84 // (x, scalar fill) Ints low, high, interior: none negative
	Concat    Kind = 85 // (x, ...) Ints [axis]
	Reverse   Kind = 86 // Ints axes, ascending: order of elements reversed along each
	// Windows lays out all windows of a tensor of at most 4 dimensions. Ints sizes, strides, dilations: one of each a
	// dimension. The result has the numbers of windows (d-(size-1)*dilation-1)/stride+1, then the sizes: its element
	// (p..., q...) is the element p*stride+q*dilation of the operand. A Dot over the sizes is a convolution.
	Windows Kind = 87
)

// Dot is the general product of two float32 tensors: Ints [c, b, lhs contracting (c of them), lhs batch (b), rhs
// contracting (c), rhs batch (b)]. The result has the batch dimensions, then the free dimensions of lhs, then those of
// rhs, each in their order. An element accumulates over the contracted elements, in row-major order of the contracting
// list, as matmul.Gemm specifies.
const (
	Dot Kind = 100
	// DotExact is Dot with the attributes bits and block after Dot's. An element accumulates over the blocks of the
	// contracted elements as exact.Form specifies.
	DotExact Kind = 101
)

// Reductions of number tensors. Ints axes, ascending, are removed; the elements reduced into one are taken as one list
// in row-major order, and reduced as kernel.Path.Sum specifies. Max and Min are those of the elementwise kinds.
const (
	ReduceSum  Kind = 110
	ReduceMax  Kind = 111
	ReduceMin  Kind = 112
	SumSquares Kind = 113 // float32 of any dimensions to a scalar: the sum of the rounded squares, as one list
	// SumWindows turns Windows around: float32 of the shape that Windows of a tensor like Out has, with the same Ints. An
	// element of the result starts from +0 and adds every element that Windows would copy it to, in row-major order.
	SumWindows Kind = 114
	// FirstMax is where a maximum is taken from: float32 to Bool of equal dimensions, Ints axes, ascending. Of each list
	// that ReduceMax would reduce, one element is true: the first that no other is greater than, or the first NaN. Zeros
	// are equal.
	FirstMax Kind = 115
)

// Rows addressed by an Int32 or Int64 tensor of indices. An index outside [0, R) is ErrIndex at run time.
const (
	TakeRows Kind = 120 // (table [R, C...], indices [I...]) to [I..., C...], any type
	// (base [R, C...], indices [I...], updates [I..., C...]), float32: base plus each update, added in order
	AddRows Kind = 121
)

// Adam with decoupled weight decay, on float32. Ints hold the bits of float32 attributes.
const (
	AdamM Kind = 130 // (m, g, scalar scale) Ints [beta1]: beta1*m + (1-beta1)*(g*scale)
	AdamV Kind = 131 // (v, g, scalar scale) Ints [beta2]: beta2*v + (1-beta2)*((g*scale)*(g*scale))
	AdamP Kind = 132 // (p, m, v, scalar lr, c1, c2) Ints [eps, decay]: p - lr*((m*c1)/(sqrt(v*c2)+eps) + decay*p)
)

// Causal attention, as attention.Head specifies, on float32 q, do [B, H, T, D], k, v [B, G, S, D] and lse, delta
// [B, H, T], of which G divides H: head h of q attends to head h/(H/G) of k and v. The sums over queries of heads that
// share keys follow each other, in ascending order of the heads. Ints [query, key]: positions of the first query and of
// the first key, which must not come after it but for GradK and GradV.
const (
	CausalAttention      Kind = 140 // (q, k, v): o
	CausalAttentionLSE   Kind = 141 // (q, k): lse
	CausalAttentionGradQ Kind = 142 // (q, k, v, do, lse, delta): dq
	CausalAttentionGradK Kind = 143 // (q, k, v, do, lse, delta): dk
	CausalAttentionGradV Kind = 144 // (q, k, do, lse): dv
)

// Cross-entropy of rows of logits [N, V] with the targets [N], columns as Int32 or Int64, as elementary.CrossEntropy
// and elementary.CrossEntropyGrad specify. Other targets are no column.
const (
	CrossEntropy     Kind = 150 // (logits, targets) to [N]
	CrossEntropyGrad Kind = 151 // (logits, targets, d [N]) to [N, V]
)

// Activations of float32, elementwise, as the methods of elementary.Math of the same name. The gradients take (x, d).
const (
	Gelu     Kind = 160
	GeluGrad Kind = 161
	Silu     Kind = 162
	SiluGrad Kind = 163
)

// Numbers in 8 bits, elementwise, as the functions of kernel of the same name. Operands have equal dimensions.
const (
	Quantize   Kind = 170 // (x float32, scale float32) to Int8
	Dequantize Kind = 171 // (codes Int8, scale float32) to float32
)

// Grade takes (examples Int32 [N, L], answers Int32 [M, T]) to the rewards float32 [M] by the rule Data, as
// grade.Grader specifies. Answer i is to the prompt of example i/(M/N). Ints [the bound of its cost for T tokens].
const Grade Kind = 180

// Moves reports whether an operator only moves elements of its operand, as Operator.Moved says.
func (k Kind) Moves() bool {
	switch k {
	case Transpose, Broadcast, Slice, Reverse, Windows:
		return true
	}
	return false
}

// Views reports whether an operator's result holds elements of its operand and no others, in their order or moved.
func (k Kind) Views() bool { return k == Identity || k == Reshape || k.Moves() }

// Elementwise reports whether every element of the result is computed from the elements of the operands at the same
// place, or from operands that it TakesWhole.
func (k Kind) Elementwise() bool {
	return k >= Neg && k <= Where || k >= AdamM && k <= AdamP || k >= Gelu && k <= Dequantize
}

// TakesWhole reports whether an elementwise operator takes all of operand i for every element.
func (k Kind) TakesWhole(i int) bool {
	switch k {
	case AdamM, AdamV:
		return i >= 2
	case AdamP:
		return i >= 3
	}
	return false
}

// Multiplies reports whether an operator is a product of two tensors.
func (k Kind) Multiplies() bool { return k == Dot || k == DotExact }

// Attention reports whether an operator is of causal attention.
func (k Kind) Attention() bool { return k >= CausalAttention && k <= CausalAttentionGradV }

// IndexOperand is the operand of an operator of this kind that says which elements of the others are needed, or -1.
func (k Kind) IndexOperand() int {
	if k == TakeRows || k == AddRows {
		return 1
	}
	return -1
}

// A rule derives the shape of the result from the operator's attributes and the shapes of its operands, or says why
// there is none. For kinds whose result is not given by those alone, it checks op.Out and returns it.
type rule func(op *Operator, in []tensor.Shape) (tensor.Shape, error)

type kindInfo struct {
	name  string
	arity int // number of operands; -1 is one or more
	rule  rule
}

var kinds = [256]kindInfo{
	Input: {"Input", 0, ruleSource}, Constant: {"Constant", 0, ruleConstant}, Iota: {"Iota", 0, ruleIota},
	Random: {"Random", 1, ruleRandom},

	Identity: {"Identity", 1, ruleUnary(anyType)}, Neg: {"Neg", 1, ruleUnary(number)}, Abs: {"Abs", 1, ruleUnary(number)},
	Sign: {"Sign", 1, ruleUnary(number)}, Exp: {"Exp", 1, ruleUnary(float)}, Log: {"Log", 1, ruleUnary(float)},
	Tanh: {"Tanh", 1, ruleUnary(float)}, Erf: {"Erf", 1, ruleUnary(float)}, Logistic: {"Logistic", 1, ruleUnary(float)},
	Sqrt: {"Sqrt", 1, ruleUnary(float)}, Rsqrt: {"Rsqrt", 1, ruleUnary(float)}, Sin: {"Sin", 1, ruleUnary(float)},
	Cos: {"Cos", 1, ruleUnary(float)}, Floor: {"Floor", 1, ruleUnary(float)}, Ceil: {"Ceil", 1, ruleUnary(float)},
	Round: {"Round", 1, ruleUnary(float)}, Not: {"Not", 1, ruleUnary(boolean)}, Convert: {"Convert", 1, ruleConvert},

	Add: {"Add", 2, ruleBinary(number)}, Sub: {"Sub", 2, ruleBinary(number)}, Mul: {"Mul", 2, ruleBinary(number)},
	Div: {"Div", 2, ruleBinary(number)}, Max: {"Max", 2, ruleBinary(number)}, Min: {"Min", 2, ruleBinary(number)},
	Pow: {"Pow", 2, ruleBinary(float)}, And: {"And", 2, ruleBinary(boolean)}, Or: {"Or", 2, ruleBinary(boolean)},

	Equal: {"Equal", 2, ruleCompare(countable)}, NotEqual: {"NotEqual", 2, ruleCompare(countable)},
	Less: {"Less", 2, ruleCompare(number)}, LessEqual: {"LessEqual", 2, ruleCompare(number)},
	Greater: {"Greater", 2, ruleCompare(number)}, GreaterEqual: {"GreaterEqual", 2, ruleCompare(number)},
	Where: {"Where", 3, ruleWhere},

	Reshape: {"Reshape", 1, ruleReshape}, Transpose: {"Transpose", 1, ruleTranspose},
	Broadcast: {"Broadcast", 1, ruleBroadcast},
	Slice:     {"Slice", 1, ruleSlice}, Pad: {"Pad", 2, rulePad}, Concat: {"Concat", -1, ruleConcat},
	Reverse: {"Reverse", 1, ruleReverse},
	Windows: {"Windows", 1, ruleWindows},

	Dot: {"Dot", 2, ruleDot}, DotExact: {"DotExact", 2, ruleDotExact},
	ReduceSum: {"ReduceSum", 1, ruleReduce}, ReduceMax: {"ReduceMax", 1, ruleReduce},
	ReduceMin:  {"ReduceMin", 1, ruleReduce},
	SumSquares: {"SumSquares", 1, ruleSumSquares},
	SumWindows: {"SumWindows", 1, ruleSumWindows}, FirstMax: {"FirstMax", 1, ruleFirstMax},
	TakeRows: {"TakeRows", 2, ruleTakeRows}, AddRows: {"AddRows", 3, ruleAddRows},
	AdamM: {"AdamM", 3, ruleAdam(2, 1)}, AdamV: {"AdamV", 3, ruleAdam(2, 1)}, AdamP: {"AdamP", 6, ruleAdam(3, 2)},

	CausalAttention:      {"CausalAttention", 3, ruleAttention('q', "qkk")},
	CausalAttentionLSE:   {"CausalAttentionLSE", 2, ruleAttention('r', "qk")},
	CausalAttentionGradQ: {"CausalAttentionGradQ", 6, ruleAttention('q', "qkkqrr")},
	CausalAttentionGradK: {"CausalAttentionGradK", 6, ruleAttention('k', "qkkqrr")},
	CausalAttentionGradV: {"CausalAttentionGradV", 4, ruleAttention('k', "qkqr")},

	CrossEntropy: {"CrossEntropy", 2, ruleCrossEntropy}, CrossEntropyGrad: {"CrossEntropyGrad", 3, ruleCrossEntropy},

	Gelu: {"Gelu", 1, ruleUnary(float)}, GeluGrad: {"GeluGrad", 2, ruleBinary(float)},
	Silu: {"Silu", 1, ruleUnary(float)}, SiluGrad: {"SiluGrad", 2, ruleBinary(float)},

	Quantize:   {"Quantize", 2, ruleQuantize(tensor.Float32, tensor.Int8)},
	Dequantize: {"Dequantize", 2, ruleQuantize(tensor.Int8, tensor.Float32)}, Grade: {"Grade", 2, ruleGrade},
}

// String returns the name of the kind, such as "Add".
func (k Kind) String() string {
	if kinds[k].name == "" {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kinds[k].name
}
