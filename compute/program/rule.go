package program

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/tensor"
)

// maxDim bounds a dimension, so that sums and products of two never overflow.
const maxDim = math.MaxInt32

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// infer applies the rule of the kind, after the checks that all kinds share. maxBytes bounds the result.
func infer(op *Operator, in []tensor.Shape, maxBytes int) (tensor.Shape, error) {
	k := kinds[op.Kind]
	switch {
	case k.rule == nil:
		return tensor.Shape{}, invalid("unknown kind %d", uint8(op.Kind))
	case k.arity >= 0 && len(in) != k.arity, len(in) < 1 && k.arity < 0:
		return tensor.Shape{}, invalid("%d operands, %s takes %d", len(in), op.Kind, k.arity)
	case len(op.Data) > 0 && op.Kind != Constant && op.Kind != Grade:
		return tensor.Shape{}, invalid("only a Constant and a Grade have data")
	case op.Name != "" && op.Kind != Input:
		return tensor.Shape{}, invalid("only an Input has a name")
	}
	out, err := k.rule(op, in)
	if err != nil {
		return tensor.Shape{}, err
	}
	if err := out.Check(maxBytes); err != nil {
		return tensor.Shape{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return out, nil
}

func anyType(d tensor.DType) bool   { return d.Valid() }
func half(d tensor.DType) bool      { return d == tensor.Float16 || d == tensor.BFloat16 }
func countable(d tensor.DType) bool { return d.Valid() && !half(d) } // numbers and bool
func number(d tensor.DType) bool    { return countable(d) && d != tensor.Bool }
func float(d tensor.DType) bool     { return d == tensor.Float32 }
func boolean(d tensor.DType) bool   { return d == tensor.Bool }
func index(d tensor.DType) bool     { return d == tensor.Int32 || d == tensor.Int64 }

// noInts rejects attributes on a kind that has none.
func noInts(op *Operator) error { return wantInts(op, 0) }

func wantInts(op *Operator, n int) error {
	if len(op.Ints) != n {
		return invalid("%d attributes, want %d", len(op.Ints), n)
	}
	return nil
}

func ruleSource(op *Operator, _ []tensor.Shape) (tensor.Shape, error) {
	if op.Name == "" || len(op.Name) > maxName {
		return tensor.Shape{}, invalid("the name of an input has %d bytes, must have 1 to %d", len(op.Name), maxName)
	}
	return op.Out, noInts(op)
}

func ruleConstant(op *Operator, _ []tensor.Shape) (tensor.Shape, error) {
	if err := op.Out.Check(math.MaxInt); err != nil {
		return op.Out, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if len(op.Data) != op.Out.Bytes() {
		return op.Out, invalid("%d bytes of data for %s, which has %d", len(op.Data), op.Out, op.Out.Bytes())
	}
	if op.Out.DType == tensor.Bool && slices.ContainsFunc(op.Data, func(b byte) bool { return b > 1 }) {
		return op.Out, invalid("a boolean constant holds a byte other than 0 and 1")
	}
	if op.Out.DType == tensor.Float32 {
		t, err := tensor.FromBytes(op.Out, op.Data)
		if err != nil {
			return op.Out, err
		}
		if t.Canonicalize(); !bytes.Equal(t.Bytes(), op.Data) {
			return op.Out, invalid("a constant holds a NaN other than 0x%x", tensor.CanonicalNaN)
		}
	}
	return op.Out, noInts(op)
}

func ruleIota(op *Operator, _ []tensor.Shape) (tensor.Shape, error) {
	if err := wantInts(op, 1); err != nil {
		return op.Out, err
	}
	if !number(op.Out.DType) {
		return op.Out, invalid("element type %s", op.Out.DType)
	}
	return op.Out, checkAxes(op.Ints, op.Out.Rank())
}

func ruleUnary(ok func(tensor.DType) bool) rule {
	return func(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
		if !ok(in[0].DType) {
			return in[0], invalid("operand is %s", in[0])
		}
		return in[0], noInts(op)
	}
}

func ruleConvert(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	return tensor.Shape{DType: op.Out.DType, Dims: in[0].Dims}, noInts(op)
}

func ruleBinary(ok func(tensor.DType) bool) rule {
	return func(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
		if !in[0].Equal(in[1]) || !ok(in[0].DType) {
			return in[0], invalid("operands are %s and %s", in[0], in[1])
		}
		return in[0], noInts(op)
	}
}

// ruleQuantize takes elements of one type and their scales to another type.
func ruleQuantize(from, to tensor.DType) rule {
	return func(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
		out := tensor.Shape{DType: to, Dims: in[0].Dims}
		if in[0].DType != from || !in[1].Equal(tensor.Shape{DType: tensor.Float32, Dims: in[0].Dims}) {
			return out, invalid("operands are %s and %s", in[0], in[1])
		}
		return out, noInts(op)
	}
}

func ruleCompare(ok func(tensor.DType) bool) rule {
	binary := ruleBinary(ok)
	return func(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
		out, err := binary(op, in)
		out.DType = tensor.Bool
		return out, err
	}
}

func ruleWhere(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	if in[0].DType != tensor.Bool || !in[1].Equal(in[2]) || !slices.Equal(in[0].Dims, in[1].Dims) {
		return in[1], invalid("operands are %s, %s and %s", in[0], in[1], in[2])
	}
	return in[1], noInts(op)
}

func ruleReduce(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	if !number(in[0].DType) {
		return in[0], invalid("operand is %s", in[0])
	}
	if err := checkAxes(op.Ints, in[0].Rank()); err != nil {
		return in[0], err
	}
	out := tensor.Shape{DType: in[0].DType}
	for i, d := range in[0].Dims {
		if !slices.Contains(op.Ints, int64(i)) {
			out.Dims = append(out.Dims, d)
		}
	}
	return out, nil
}

// checkAxes demands ascending axes of a tensor of the given rank.
func checkAxes(axes []int64, rank int) error {
	for i, a := range axes {
		if a < 0 || a >= int64(rank) || i > 0 && a <= axes[i-1] {
			return invalid("axes %v of a tensor of %d dimensions (they must ascend)", axes, rank)
		}
	}
	return nil
}

func ruleSumSquares(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	if !float(in[0].DType) {
		return in[0], invalid("operand is %s", in[0])
	}
	return tensor.Make(tensor.Float32), noInts(op)
}

func ruleTakeRows(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	table, indices := in[0], in[1]
	if table.Rank() < 1 || !index(indices.DType) {
		return table, invalid("table %s, indices %s", table, indices)
	}
	return tensor.Make(table.DType, slices.Concat(indices.Dims, table.Dims[1:])...), noInts(op)
}

func ruleGrade(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	x, y := in[0], in[1]
	if x.DType != tensor.Int32 || y.DType != tensor.Int32 || x.Rank() != 2 || y.Rank() != 2 || y.Dims[0]%x.Dims[0] != 0 {
		return x, invalid("examples %s, answers %s", x, y)
	}
	if err := grade.Check(op.Data, y.Dims[1], op.Ints); err != nil {
		return x, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return tensor.Make(tensor.Float32, y.Dims[0]), nil
}

func ruleAddRows(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	base, indices, updates := in[0], in[1], in[2]
	if base.Rank() < 1 || !index(indices.DType) || !float(base.DType) ||
		!updates.Equal(tensor.Make(tensor.Float32, slices.Concat(indices.Dims, base.Dims[1:])...)) {
		return base, invalid("base %s, indices %s, updates %s", base, indices, updates)
	}
	return base, noInts(op)
}

// ruleAdam checks a number of float32 tensors of one shape, then scalars, and the number of attributes.
func ruleAdam(tensors, ints int) rule {
	return func(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
		for i, s := range in {
			if i < tensors && !s.Equal(in[0]) || i >= tensors && !s.Equal(tensor.Make(tensor.Float32)) || !float(s.DType) {
				return s, invalid("operand %d is %s", i, s)
			}
		}
		for _, v := range op.Ints {
			if v < 0 || v > math.MaxUint32 {
				return in[0], invalid("attribute %d is not the bits of a float32", v)
			}
		}
		return in[0], wantInts(op, ints)
	}
}
