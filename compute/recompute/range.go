package recompute

import (
	"fmt"
	"slices"
	"sort"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute/gather"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// ErrPartial is returned for operands of which less is known than is needed.
var ErrPartial = gather.ErrPartial

// needs lists the leaves of the operands that pieces gather from.
func needs(pieces []piece, in []tensor.Shape) [][]int {
	need := make([][]int, len(in))
	for _, p := range pieces {
		for _, g := range p.in {
			each := tensor.LeafBytes / in[g.Operand].DType.Size()
			list := need[g.Operand]
			for _, r := range g.Runs {
				for leaf := r.From / each; leaf <= (r.From+r.N-1)/each; leaf++ {
					if len(list) == 0 || list[len(list)-1] != leaf {
						list = append(list, leaf)
					}
				}
			}
			need[g.Operand] = list
		}
	}
	for k := range need {
		slices.Sort(need[k])
		need[k] = slices.Compact(need[k])
	}
	return need
}

// EvalRange computes elements lo up to hi of the output of an operator of a program of the given numerics, other than
// an Input, with the portable kernels, and returns their bytes, which are those of cpu.Eval. The operands need to have
// no more than the leaves that Need lists for them. Errors wrap ErrPartial, or are those of cpu.Eval.
func EvalRange(numerics uint32, op *program.Operator, in []*tensor.Partial, lo, hi int) ([]byte, error) {
	pieces, err := cut(op, shapesOf(in), lo, hi, indicesOf(op, in))
	if err != nil {
		return nil, err
	}
	var out []byte
	for _, p := range pieces {
		b, err := p.eval(numerics, in)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
	}
	return out, nil
}

// A piece computes some elements of an output by an operator of its own, on elements gathered from the operands.
type piece struct {
	op     *program.Operator // nil: the elements are those gathered, one after the other, or as sum or random say
	in     []gather.Gather
	rows   []int32    // for AddRows: the indices, which are not gathered
	data   []byte     // the elements themselves, if there are no operands
	take   []int      // elements of the operator's output that are the piece; nil: all of them
	sums   []int      // how many of the gathered float32 each element is the sum of, added to +0 in order; nil: no sums
	random gather.Run // words of the random stream whose key is gathered; none: no random words
}

func (p *piece) eval(numerics uint32, in []*tensor.Partial) ([]byte, error) {
	out := p.data
	var operands []*tensor.Tensor
	for i := range p.in {
		t, err := p.in[i].Read(in[p.in[i].Operand])
		if err != nil {
			return nil, err
		}
		if p.op == nil {
			out = append(out, t.Bytes()...)
		}
		operands = append(operands, t)
	}
	switch {
	case p.sums != nil:
		return sumsOf(operands, p.sums), nil
	case p.random.N > 0:
		return wordsOf(operands[0], p.random), nil
	case p.op == nil:
		return out, nil
	case p.rows != nil:
		operands = slices.Insert(operands, 1, tensor.FromI32(p.rows, len(p.rows)))
	}
	t, err := cpu.Eval(numerics, p.op, operands)
	switch {
	case err != nil:
		return nil, err
	case p.take == nil:
		return t.Bytes(), nil
	}
	size := t.Shape.DType.Size()
	for _, i := range p.take {
		out = append(out, t.Bytes()[i*size:(i+1)*size]...)
	}
	return out, nil
}

// cut returns the pieces that make elements lo up to hi of an output, in order.
func cut(op *program.Operator, in []tensor.Shape, lo, hi int, indices *tensor.Partial) ([]piece, error) {
	switch op.Kind {
	case program.Input:
		return nil, fmt.Errorf("%w: an Input has no value of its own", program.ErrInvalid)
	case program.Constant:
		size := op.Out.DType.Size()
		return []piece{{data: op.Data[lo*size : hi*size : hi*size]}}, nil
	case program.Iota:
		return []piece{{data: iotaRange(op, lo, hi)}}, nil
	case program.Identity, program.Reshape:
		return []piece{{in: []gather.Gather{{Runs: gather.One(lo, hi-lo)}}}}, nil
	case program.Transpose, program.Broadcast, program.Slice, program.Reverse, program.Windows:
		return []piece{{in: []gather.Gather{movedRange(op, in[0], lo, hi)}}}, nil
	case program.Pad:
		return []piece{{in: padRange(op, in[0], lo, hi)}}, nil
	case program.Concat:
		return []piece{{in: concatRange(op, in, lo, hi)}}, nil
	case program.Dot, program.DotExact, program.ReduceSum, program.ReduceMax, program.ReduceMin, program.SumSquares,
		program.AddRows:
		return cutList(op, in, lo, hi, 0, listLength(op, in), indices)
	case program.SumWindows:
		return []piece{sumWindowsRange(op, in[0], lo, hi)}, nil
	case program.FirstMax:
		return []piece{firstMaxRange(op, lo, hi)}, nil
	case program.Random:
		return []piece{{in: []gather.Gather{{Runs: gather.One(0, 3)}}, random: gather.Run{From: lo, N: hi - lo}}}, nil
	case program.TakeRows:
		return takeRange(in, lo, hi, indices)
	case program.CausalAttention, program.CausalAttentionLSE, program.CausalAttentionGradQ,
		program.CausalAttentionGradK, program.CausalAttentionGradV:
		return attentionRange(op, in, lo, hi), nil
	case program.CrossEntropy, program.CrossEntropyGrad:
		return []piece{crossEntropyRange(op, in, lo, hi)}, nil
	case program.Grade:
		return []piece{gradeRange(op, in, lo, hi)}, nil
	}
	single := *op
	single.Out = tensor.Make(op.Out.DType, hi-lo)
	p := piece{op: &single}
	for k := range in {
		g := gather.Gather{Operand: k, Dims: []int{hi - lo}, Runs: gather.One(lo, hi-lo)}
		if op.Kind.TakesWhole(k) {
			g = gather.Gather{Operand: k, Runs: gather.One(0, 1)}
		}
		p.in = append(p.in, g)
	}
	return []piece{p}, nil
}

func iotaRange(op *program.Operator, lo, hi int) []byte {
	s, axis := op.Out, op.Ints[0]
	out := tensor.New(tensor.Make(s.DType, hi-lo)).Bytes()
	inner, dim := view.Elements(s.Dims[axis+1:]), s.Dims[axis]
	switch s.DType {
	case tensor.Float32:
		kernel.Iota(tensor.As[float32](out), lo, inner, dim)
	case tensor.Int8:
		kernel.Iota(tensor.As[int8](out), lo, inner, dim)
	case tensor.Int32:
		kernel.Iota(tensor.As[int32](out), lo, inner, dim)
	case tensor.Int64:
		kernel.Iota(tensor.As[int64](out), lo, inner, dim)
	case tensor.Uint32:
		kernel.Iota(tensor.As[uint32](out), lo, inner, dim)
	default:
		kernel.Iota(out, lo, inner, dim)
	}
	return out
}

// axesOf is the view of some axes of a tensor, the others at 0.
func axesOf(s tensor.Shape, axes []int64) view.View {
	return view.Dense(s.Dims).Axes(axes)
}

func movedRange(op *program.Operator, s tensor.Shape, lo, hi int) (g gather.Gather) {
	for _, at := range op.Moved(view.Dense(s.Dims)).Offsets(lo, hi) {
		g.Add(at, 1)
	}
	return g
}

func padRange(op *program.Operator, s tensor.Shape, lo, hi int) []gather.Gather {
	rank, strides := s.Rank(), view.Strides(s.Dims)
	var out joined
	for i := lo; i < hi; i++ {
		at, rest, inside := 0, i, true
		for d := rank - 1; d >= 0 && inside; d-- {
			c := rest%op.Out.Dims[d] - int(op.Ints[d])
			step := int(op.Ints[2*rank+d]) + 1
			inside = c >= 0 && c%step == 0 && c/step < s.Dims[d]
			at += c / step * strides[d]
			rest /= op.Out.Dims[d]
		}
		if inside {
			out.add(0, at, 1)
		} else {
			out.add(1, 0, 1)
		}
	}
	return out
}

// joined is gathers whose elements follow each other.
type joined []gather.Gather

func (j *joined) add(operand, from, n int) {
	if k := len(*j) - 1; k < 0 || (*j)[k].Operand != operand {
		*j = append(*j, gather.Gather{Operand: operand})
	}
	(*j)[len(*j)-1].Add(from, n)
}

func concatRange(op *program.Operator, in []tensor.Shape, lo, hi int) []gather.Gather {
	axis := op.Ints[0]
	row := view.Elements(op.Out.Dims[axis:])
	starts := make([]int, len(in)+1) // of the operands in a row, and its end
	for k, s := range in {
		starts[k+1] = starts[k] + view.Elements(s.Dims[axis:])
	}
	k := sort.SearchInts(starts, lo%row+1) - 1
	var out joined
	for lo < hi {
		at, width := lo%row-starts[k], starts[k+1]-starts[k]
		n := min(width-at, hi-lo)
		out.add(k, lo/row*width+at, n)
		lo, k = lo+n, (k+1)%len(in)
	}
	return out
}

// cutDot cuts a range in rectangles of the output of one product, a part of a row or whole rows, over the contracted
// elements from up to to.
func cutDot(op *program.Operator, in []tensor.Shape, lo, hi, from, to int) ([]piece, error) {
	a, err := program.AxesOfDot(op.Ints, in[0].Rank(), in[1].Rank())
	if err != nil {
		return nil, err
	}
	m, n := view.Elements(view.Pick(in[0].Dims, a.LHSFree)), view.Elements(view.Pick(in[1].Dims, a.RHSFree))
	k := to - from
	kl, kr := axesOf(in[0], a.LHSContract).Offsets(from, to), axesOf(in[1], a.RHSContract).Offsets(from, to)
	var out []piece
	for lo < hi {
		batch, i, j := lo/n/m, lo/n%m, lo%n
		rows, cols := 1, min(n-j, hi-lo)
		if cols == n {
			rows = min((hi-lo)/n, m-i)
		}
		l := rectangle(0, axesOf(in[0], a.LHSBatch).Offsets(batch, batch+1)[0],
			axesOf(in[0], a.LHSFree).Offsets(i, i+rows), kl)
		base := axesOf(in[1], a.RHSBatch).Offsets(batch, batch+1)[0]
		free := axesOf(in[1], a.RHSFree).Offsets(j, j+cols)
		single := &program.Operator{Kind: op.Kind, Out: tensor.Make(tensor.Float32, rows, cols),
			Ints: append([]int64{1, 0, 1, 1}, op.Ints[2+2*(len(a.LHSContract)+len(a.LHSBatch)):]...)} // and its form
		var r gather.Gather
		if k > 1 && kr[1] == kr[0]+1 { // elements to be multiplied are neighbours
			r = rectangle(1, base, free, kr)
		} else {
			single.Ints[3] = 0
			r = rectangle(1, base, kr, free)
		}
		out = append(out, piece{op: single, in: []gather.Gather{l, r}})
		lo += rows * cols
	}
	return out, nil
}

// rectangle gathers the elements at the sums of a base, an offset of each row and an offset of each column.
func rectangle(operand, base int, rows, cols []int) gather.Gather {
	var row gather.Gather
	for _, c := range cols {
		row.Add(c, 1)
	}
	g := gather.Gather{Operand: operand, Dims: []int{len(rows), len(cols)}, Steps: row.Steps}
	for _, r := range rows {
		for _, run := range row.Runs {
			g.Add(base+r+run.From, run.N)
		}
	}
	return g
}

// reduceRange reduces the elements from up to to of each list.
func reduceRange(op *program.Operator, s tensor.Shape, lo, hi, from, to int) piece {
	single := &program.Operator{Kind: op.Kind, Out: tensor.Make(s.DType, hi-lo), Ints: []int64{1}}
	kept := axesOf(s, view.Others(s.Rank(), op.Ints)).Offsets(lo, hi)
	list := axesOf(s, op.Ints).Offsets(from, to)
	if slices.Contains(op.Ints, int64(s.Rank()-1)) {
		return piece{op: single, in: []gather.Gather{rectangle(0, 0, kept, list)}}
	}
	single.Ints[0] = 0
	return piece{op: single, in: []gather.Gather{rectangle(0, 0, list, kept)}}
}

// rowsOf returns the indices from to to, and an error if one is outside of the rows of a table.
func rowsOf(k program.Kind, indices *tensor.Partial, from, to, rows int) ([]int, error) {
	g := gather.Gather{Operand: 1}
	g.Add(from, to-from)
	t, err := g.Read(indices)
	if err != nil {
		return nil, err
	}
	out := make([]int, to-from)
	for i := range out {
		var v int64
		if t.Shape.DType == tensor.Int64 {
			v = tensor.As[int64](t.Bytes())[i]
		} else {
			v = int64(tensor.As[int32](t.Bytes())[i])
		}
		if v < 0 || v >= int64(rows) {
			return nil, program.IndexError(0, k, v, rows)
		}
		out[i] = int(v)
	}
	return out, nil
}

func takeRange(in []tensor.Shape, lo, hi int, indices *tensor.Partial) ([]piece, error) {
	width := view.Elements(in[0].Dims[1:])
	from, to := lo/width, (hi-1)/width+1
	if indices == nil {
		return []piece{{in: []gather.Gather{{Operand: 1, Runs: gather.One(from, to-from)}}}}, nil
	}
	rows, err := rowsOf(program.TakeRows, indices, from, to, in[0].Dims[0])
	if err != nil {
		return nil, err
	}
	var g gather.Gather
	for lo < hi {
		n := min(hi-lo, width-lo%width)
		g.Add(rows[lo/width-from]*width+lo%width, n)
		lo += n
	}
	return []piece{{in: []gather.Gather{g}}}, nil
}

// addRange adds the updates from up to to; before the first there is the base.
func addRange(op *program.Operator, in []tensor.Shape, lo, hi, from, to int, indices *tensor.Partial) ([]piece, error) {
	base, updates := gather.Gather{Dims: []int{hi - lo, 1}}, gather.Gather{Operand: 2}
	base.Add(lo, hi-lo)
	if indices == nil {
		return []piece{{in: []gather.Gather{{Operand: 1, Runs: gather.One(from, to-from)}}}}, nil
	}
	rows, err := rowsOf(program.AddRows, indices, from, to, in[0].Dims[0])
	if err != nil {
		return nil, err
	}
	width := view.Elements(in[0].Dims[1:])
	at := []int32{} // of the elements that are added to, in the range
	for u, r := range rows {
		first, end := max(r*width, lo), min((r+1)*width, hi)
		if first < end {
			updates.Add((from+u)*width+first-r*width, end-first)
		}
		for e := first; e < end; e++ {
			at = append(at, int32(e-lo))
		}
	}
	p := piece{op: &program.Operator{Kind: program.AddRows, Out: tensor.Make(op.Out.DType, hi-lo, 1)}, rows: at}
	if from == 0 {
		p.in = append(p.in, base)
	}
	if len(at) == 0 {
		p.op, p.rows = nil, nil
		return []piece{p}, nil
	}
	updates.Dims = []int{len(at), 1}
	p.in = append(p.in, updates)
	return []piece{p}, nil
}
