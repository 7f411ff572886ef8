package program

import (
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

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

// lowerSumWindows spreads the work over the first dimension if no two windows share an element across it.
func (pl *plan) lowerSumWindows(op *Operator) loc {
	rank, dims := op.Out.Rank(), pl.p.Ops[op.In[0]].Out.Dims
	windows := view.Dense(op.Out.Dims).Windows(dims, op.Ints[rank:2*rank], op.Ints[2*rank:])
	parts, each := 1, view.Elements(dims)
	if rank > 0 && op.Ints[0] == 1 {
		parts, each = dims[0], view.Elements(dims[1:])
	}
	return pl.addStep([]span{pl.spanOf(op.In[0])}, op.Out, func(x *Exec, dst []byte, in [][]byte) error {
		to, from := tensor.As[float32](dst), tensor.As[float32](in[0])
		clear(to)
		x.parallel(parts, each, func(lo, hi int) { kernel.AddTo(to, &windows, from[lo*each:hi*each], lo*each) })
		return nil
	})
}

// lowerFirstMax marks lists of neighbours: the reduced axes are moved to the end and back.
func (pl *plan) lowerFirstMax(op *Operator) loc {
	s := op.Out
	perm := append(view.Others(s.Rank(), op.Ints), op.Ints...)
	x := pl.at[op.In[0]]
	moved := x.through(x.Axes(perm))
	in := span{moved.store, 4 * moved.Offset, 4*moved.Offset + 4*s.Elements()}
	if !moved.Contiguous() {
		c := pl.addLane(copyLane, []operand{{loc: moved, size: 4}}, tensor.Make(tensor.Float32, moved.Dims...))
		in = span{c.store, 0, 4 * s.Elements()}
	}
	n := view.Elements(view.Pick(s.Dims, op.Ints))
	marks := pl.addStep([]span{in}, tensor.Make(tensor.Bool, moved.Dims...), func(x *Exec, dst []byte, in [][]byte) error {
		from := tensor.As[float32](in[0])
		x.parallel(len(dst)/n, n, func(lo, hi int) { kernel.FirstMax(dst[lo*n:hi*n], from[lo*n:hi*n], n) })
		return nil
	})
	return marks.through(marks.Axes(view.Inverse(perm)))
}

func randomStep(x *Exec, dst []byte, in [][]byte) error {
	key, words := tensor.As[int64](in[0]), tensor.As[uint32](dst)
	x.parallel((len(words)+3)/4, 4*randomCost, func(lo, hi int) {
		philox.BlocksTo(words[4*lo:min(4*hi, len(words))], uint64(key[0]), uint64(key[1]), uint64(key[2])+uint64(lo))
	})
	return nil
}

// randomCost is the work of a random word in additions, about.
const randomCost = 8
