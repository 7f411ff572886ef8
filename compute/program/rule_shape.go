package program

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

func ruleReshape(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	out := tensor.Shape{DType: in[0].DType, Dims: op.Out.Dims}
	if err := out.Check(in[0].Bytes()); err != nil || out.Elements() != in[0].Elements() {
		return out, invalid("%s reshaped to %v", in[0], op.Out.Dims)
	}
	return out, noInts(op)
}

func ruleTranspose(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	if err := wantInts(op, in[0].Rank()); err != nil {
		return in[0], err
	}
	if err := checkDistinct(op.Ints, in[0].Rank()); err != nil {
		return in[0], err
	}
	out := tensor.Shape{DType: in[0].DType}
	for _, a := range op.Ints {
		out.Dims = append(out.Dims, in[0].Dims[a])
	}
	return out, nil
}

// checkDistinct demands axes of a tensor of the given rank, none twice, in any order.
func checkDistinct(axes []int64, rank int) error {
	sorted := slices.Sorted(slices.Values(axes))
	if checkAxes(sorted, rank) != nil {
		return invalid("axes %v of a tensor of %d dimensions (each at most once)", axes, rank)
	}
	return nil
}

func ruleBroadcast(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	out := tensor.Shape{DType: in[0].DType, Dims: op.Out.Dims}
	if err := wantInts(op, in[0].Rank()); err != nil {
		return out, err
	}
	if err := checkDistinct(op.Ints, out.Rank()); err != nil {
		return out, err
	}
	for i, a := range op.Ints {
		if d := in[0].Dims[i]; d != 1 && d != out.Dims[a] {
			return out, invalid("%s broadcast to %v along axes %v", in[0], out.Dims, op.Ints)
		}
	}
	return out, nil
}

func ruleSlice(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	rank := in[0].Rank()
	if err := wantInts(op, 3*rank); err != nil {
		return in[0], err
	}
	out := tensor.Shape{DType: in[0].DType}
	for i, d := range in[0].Dims {
		start, limit, stride := op.Ints[i], op.Ints[rank+i], op.Ints[2*rank+i]
		if start < 0 || start >= limit || limit > int64(d) || stride < 1 || stride > int64(d) {
			return out, invalid("slice of dimension %d of %s: start %d, limit %d, stride %d", i, in[0], start, limit, stride)
		}
		out.Dims = append(out.Dims, int((limit-start+stride-1)/stride))
	}
	return out, nil
}

func rulePad(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	rank := in[0].Rank()
	if err := wantInts(op, 3*rank); err != nil {
		return in[0], err
	}
	if !in[1].Equal(tensor.Make(in[0].DType)) {
		return in[0], invalid("%s padded with %s, want a scalar of the same type", in[0], in[1])
	}
	for _, v := range op.Ints {
		if v < 0 || v > maxDim {
			return in[0], invalid("padding %d", v)
		}
	}
	out := tensor.Shape{DType: in[0].DType}
	for i, d := range in[0].Dims {
		if d > maxDim {
			return out, invalid("dimension %d of %s is too large to pad", i, in[0])
		}
		low, high, interior := op.Ints[i], op.Ints[rank+i], op.Ints[2*rank+i]
		out.Dims = append(out.Dims, int(low+high+int64(d)+int64(d-1)*interior))
	}
	return out, nil
}

func ruleConcat(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	if err := wantInts(op, 1); err != nil {
		return in[0], err
	}
	if err := checkAxes(op.Ints, in[0].Rank()); err != nil {
		return in[0], err
	}
	axis := int(op.Ints[0])
	out := in[0].Clone()
	for _, s := range in[1:] {
		if s.DType != out.DType || s.Rank() != out.Rank() {
			return out, invalid("%s concatenated with %s", in[0], s)
		}
		for i, d := range s.Dims {
			if i == axis {
				out.Dims[i] = min(out.Dims[i]+d, maxDim)
			} else if d != out.Dims[i] {
				return out, invalid("%s concatenated with %s along axis %d", in[0], s, axis)
			}
		}
	}
	if out.Dims[axis] >= maxDim {
		return out, invalid("concatenation is too long")
	}
	return out, nil
}

func ruleReverse(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	return in[0], checkAxes(op.Ints, in[0].Rank())
}

// DotAxes are the axes of the operands of a Dot, by role.
type DotAxes struct {
	LHSContract, LHSBatch, RHSContract, RHSBatch []int64
	LHSFree, RHSFree                             []int64
}

// AxesOfDot reads the attributes of a Dot or a DotExact between tensors of the given ranks. Those of a program that has
// passed Check give no error.
func AxesOfDot(ints []int64, lhsRank, rhsRank int) (DotAxes, error) {
	var a DotAxes
	if len(ints) < 2 {
		return a, invalid("%d attributes, want at least 2", len(ints))
	}
	c, b := ints[0], ints[1]
	if c < 0 || b < 0 || c > tensor.MaxRank || b > tensor.MaxRank || int64(len(ints)) < 2+2*(c+b) {
		return a, invalid("%d attributes do not hold %d contracting and %d batch axes", len(ints), c, b)
	}
	rest := ints[2:]
	take := func(n int64) (axes []int64) {
		axes, rest = rest[:n], rest[n:]
		return axes
	}
	a.LHSContract, a.LHSBatch, a.RHSContract, a.RHSBatch = take(c), take(b), take(c), take(b)
	if err := checkDistinct(slices.Concat(a.LHSContract, a.LHSBatch), lhsRank); err != nil {
		return a, err
	}
	if err := checkDistinct(slices.Concat(a.RHSContract, a.RHSBatch), rhsRank); err != nil {
		return a, err
	}
	a.LHSFree = view.Others(lhsRank, a.LHSContract, a.LHSBatch)
	a.RHSFree = view.Others(rhsRank, a.RHSContract, a.RHSBatch)
	return a, nil
}

// FormOfDot is the form that the attributes of a DotExact end with. Those of a program that has passed Check are one.
func FormOfDot(ints []int64) exact.Form {
	n := len(ints)
	return exact.Form{Bits: int(ints[n-2]), Block: int(ints[n-1])}
}

func ruleDotExact(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	n := len(op.Ints) - 2
	if n < 0 {
		return in[0], invalid("%d attributes, want at least 4", len(op.Ints))
	}
	if err := FormOfDot(op.Ints).Check(); err != nil {
		return in[0], fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	plain := *op
	plain.Kind, plain.Ints = Dot, op.Ints[:n]
	out, err := ruleDot(&plain, in)
	if err != nil {
		return out, err
	}
	a, err := AxesOfDot(op.Ints, in[0].Rank(), in[1].Rank())
	if k := view.Elements(view.Pick(in[0].Dims, a.LHSContract)); k > exact.MaxK {
		return out, invalid("%d contracted elements, at most %d", k, exact.MaxK)
	}
	return out, err
}

func ruleDot(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	l, r := in[0], in[1]
	if !float(l.DType) || !float(r.DType) {
		return l, invalid("product of %s and %s", l, r)
	}
	a, err := AxesOfDot(op.Ints, l.Rank(), r.Rank())
	if err != nil {
		return l, err
	}
	if n := 2 * (1 + len(a.LHSContract) + len(a.LHSBatch)); len(op.Ints) != n {
		return l, invalid("%d attributes, want %d", len(op.Ints), n)
	}
	for i, x := range slices.Concat(a.LHSContract, a.LHSBatch) {
		if y := slices.Concat(a.RHSContract, a.RHSBatch)[i]; l.Dims[x] != r.Dims[y] {
			return l, invalid("dimension %d of %s does not match dimension %d of %s", x, l, y, r)
		}
	}
	out := tensor.Shape{DType: tensor.Float32}
	out.Dims = append(out.Dims, view.Pick(l.Dims, a.LHSBatch)...)
	out.Dims = append(out.Dims, view.Pick(l.Dims, a.LHSFree)...)
	out.Dims = append(out.Dims, view.Pick(r.Dims, a.RHSFree)...)
	return out, nil
}
