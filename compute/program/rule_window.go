package program

import "github.com/starling-network/starling/compute/tensor"

// windowDims returns the dimensions of Windows of a tensor, by attributes that are sizes, strides and dilations.
func windowDims(dims []int, attributes []int64) ([]int, error) {
	rank := len(dims)
	if len(attributes) != 3*rank || 2*rank > tensor.MaxRank {
		return nil, invalid("%d attributes for windows of %d dimensions (at most %d, 3 attributes each)", len(attributes),
			rank, tensor.MaxRank/2)
	}
	out := make([]int, 2*rank)
	for i, d := range dims {
		size, stride, dilation := attributes[i], attributes[rank+i], attributes[2*rank+i]
		if min(size, stride, dilation) < 1 || max(size, stride, dilation) > maxDim || (size-1)*dilation >= int64(d) {
			return nil, invalid("window of size %d, stride %d and dilation %d along dimension %d of %v", size, stride, dilation,
				i, dims)
		}
		out[i] = int((int64(d)-(size-1)*dilation-1)/stride + 1)
		out[rank+i] = int(size)
	}
	return out, nil
}

func ruleWindows(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	dims, err := windowDims(in[0].Dims, op.Ints)
	return tensor.Make(in[0].DType, dims...), err
}

func ruleSumWindows(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	out := tensor.Make(tensor.Float32, op.Out.Dims...)
	dims, err := windowDims(out.Dims, op.Ints)
	if err == nil && !in[0].Equal(tensor.Make(tensor.Float32, dims...)) {
		err = invalid("operand is %s, the windows of %s are %v", in[0], out, dims)
	}
	return out, err
}

func ruleFirstMax(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	if !float(in[0].DType) {
		return in[0], invalid("operand is %s", in[0])
	}
	return tensor.Make(tensor.Bool, in[0].Dims...), checkAxes(op.Ints, in[0].Rank())
}

func ruleRandom(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	if !in[0].Equal(tensor.Make(tensor.Int64, 3)) {
		return in[0], invalid("key is %s, want int64[3]", in[0])
	}
	return tensor.Make(tensor.Uint32, op.Out.Dims...), noInts(op)
}

func ruleCrossEntropy(op *Operator, in []tensor.Shape) (tensor.Shape, error) {
	logits, targets := in[0], in[1]
	if !float(logits.DType) || logits.Rank() != 2 || !index(targets.DType) || targets.Rank() != 1 ||
		targets.Dims[0] != logits.Dims[0] {
		return logits, invalid("logits %s, targets %s", logits, targets)
	}
	rows := tensor.Make(tensor.Float32, logits.Dims[0])
	if op.Kind == CrossEntropy {
		return rows, noInts(op)
	}
	if !in[2].Equal(rows) {
		return logits, invalid("logits %s, factors of the gradient %s", logits, in[2])
	}
	return logits, noInts(op)
}
