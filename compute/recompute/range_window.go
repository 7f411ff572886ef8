package recompute

import (
	"slices"

	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute/gather"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// sumWindowsRange gathers, for each element of a range, what the windows that show it hold of it.
func sumWindowsRange(op *program.Operator, windows tensor.Shape, lo, hi int) piece {
	rank := op.Out.Rank()
	strides := view.Strides(windows.Dims)
	g := gather.Gather{Dims: nil}
	p := piece{sums: make([]int, hi-lo)}
	for i := lo; i < hi; i++ {
		from := []int{0}
		for d, rest := rank-1, i; d >= 0; d-- {
			at := windowsAt(op, d, rest%op.Out.Dims[d], windows.Dims[d], strides[d], strides[rank+d])
			from = sumsOfAll(at, from)
			rest /= op.Out.Dims[d]
		}
		// Row-major order of windows is that of their positions, which are the offsets' leading digits.
		slices.Sort(from)
		for _, o := range from {
			g.Add(o, 1)
		}
		p.sums[i-lo] = len(from)
	}
	if len(g.Runs) > 0 {
		p.in = []gather.Gather{g}
	}
	return p
}

// windowsAt returns the offsets along a dimension of the windows' gather.Run that show coordinate x.
func windowsAt(op *program.Operator, d, x, positions, positionStride, elementStride int) (out []int) {
	rank := op.Out.Rank()
	size, stride, dilation := int(op.Ints[d]), int(op.Ints[rank+d]), int(op.Ints[2*rank+d])
	for q := range size {
		if p := x - q*dilation; p >= 0 && p%stride == 0 && p/stride < positions {
			out = append(out, p/stride*positionStride+q*elementStride)
		}
	}
	return out
}

// sumsOfAll returns every a + b.
func sumsOfAll(a, b []int) []int {
	out := make([]int, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out
}

// sumsOf adds up what is gathered, if anything is, in pieces of the given lengths, each from +0.
func sumsOf(gathered []*tensor.Tensor, lengths []int) []byte {
	out := make([]float32, len(lengths))
	var x []float32
	for _, t := range gathered {
		x = t.F32()
	}
	for i, n := range lengths {
		for _, v := range x[:n] {
			out[i] += v
		}
		x = x[n:]
	}
	return tensor.FromF32(out, len(out)).Bytes()
}

// firstMaxRange gathers the lists that the gather.Run of a range belong to.
func firstMaxRange(op *program.Operator, lo, hi int) piece {
	s := op.Out
	free := view.Others(s.Rank(), op.Ints)
	n := view.Elements(view.Pick(s.Dims, op.Ints))
	strides := view.Strides(s.Dims)
	var lists []int // offsets of their first elements
	row := map[int]int{}
	take := make([]int, hi-lo)
	for i := lo; i < hi; i++ {
		list, at := 0, 0
		for _, a := range free {
			list += i / strides[a] % s.Dims[a] * strides[a]
		}
		for _, a := range op.Ints {
			at = at*s.Dims[a] + i/strides[a]%s.Dims[a]
		}
		if _, ok := row[list]; !ok {
			row[list] = len(lists)
			lists = append(lists, list)
		}
		take[i-lo] = row[list]*n + at
	}
	single := &program.Operator{Kind: program.FirstMax, Out: tensor.Make(tensor.Bool, len(lists), n), Ints: []int64{1}}
	return piece{op: single, in: []gather.Gather{rectangle(0, 0, lists, axesOf(s, op.Ints).Offsets(0, n))}, take: take}
}

// wordsOf returns words of the random stream with a key of seed, stream and index.
func wordsOf(t *tensor.Tensor, e gather.Run) []byte {
	key := tensor.As[int64](t.Bytes())
	skip := e.From % 4
	words := make([]uint32, skip+e.N)
	philox.BlocksTo(words, uint64(key[0]), uint64(key[1]), uint64(key[2])+uint64(e.From/4))
	out := tensor.New(tensor.Make(tensor.Uint32, e.N)).Bytes()
	copy(tensor.As[uint32](out), words[skip:])
	return out
}
