package recompute

import (
	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute/attend"
	"github.com/starling-network/starling/compute/recompute/gather"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// The kinds of this file compute every element of their output from a list of elements, in an order that the kind
// fixes: the products of a Dot or a DotExact, what is reduced, the updates of AddRows. So a range can be computed along
// its lists a link at a time, and what is kept between two links is specified to the bit.

// listLength is the number of elements in the lists of an operator, 0 if it has none.
func listLength(op *program.Operator, in []tensor.Shape) int {
	switch op.Kind {
	case program.Dot, program.DotExact:
		return view.Elements(view.Pick(in[0].Dims, op.Ints[2:2+op.Ints[0]]))
	case program.ReduceSum, program.ReduceMax, program.ReduceMin:
		return in[0].Elements() / op.Out.Elements()
	case program.SumSquares:
		return in[0].Elements()
	case program.AddRows:
		return in[1].Elements()
	case program.CausalAttention, program.CausalAttentionLSE, program.CausalAttentionGradQ,
		program.CausalAttentionGradK, program.CausalAttentionGradV:
		a := attend.Of(op, in)
		return a.Length()
	}
	return 0
}

// shortestLink is the number of elements of a list in the shortest link, a power of two. Longer links have a multiple.
func shortestLink(op *program.Operator) int {
	if op.Kind == program.DotExact {
		return program.FormOfDot(op.Ints).Block // which has one exponent
	}
	return 1
}

// cutList returns the pieces that elements from up to to of the lists of a range give.
func cutList(op *program.Operator, in []tensor.Shape, lo, hi, from, to int, indices *tensor.Partial) ([]piece, error) {
	switch op.Kind {
	case program.CausalAttention, program.CausalAttentionLSE, program.CausalAttentionGradQ,
		program.CausalAttentionGradK, program.CausalAttentionGradV:
		a := attend.Of(op, in)
		return []piece{{in: a.Needs(lo, hi, from, to)}}, nil
	case program.Dot, program.DotExact:
		return cutDot(op, in, lo, hi, from, to)
	case program.AddRows:
		return addRange(op, in, lo, hi, from, to, indices)
	case program.SumSquares:
		single := &program.Operator{Kind: program.SumSquares, Out: op.Out}
		return []piece{{op: single, in: []gather.Gather{{Dims: []int{to - from}, Runs: gather.One(from, to-from)}}}}, nil
	}
	return []piece{reduceRange(op, in[0], lo, hi, from, to)}, nil
}

// stateBytes is the size of the state of n elements after at elements of their lists, some but not all.
func stateBytes(op *program.Operator, n, length, at int) int {
	switch {
	case op.Kind == program.Dot && at > matmul.ChunkK && at%matmul.ChunkK != 0:
		return 8 * n // sums of whole chunks, then the chains
	case summed(op):
		return 4 * n * kernel.SumState(length)
	}
	return n * op.Out.DType.Size()
}

// summed reports whether an operator is a kernel.Path.Sum.
func summed(op *program.Operator) bool {
	return op.Kind == program.SumSquares || op.Kind == program.ReduceSum && op.Out.DType == tensor.Float32
}

// follow returns the state after the elements from up to to of the lists of n elements, given the state before them;
// after the last, the elements.
func follow(numerics uint32, op *program.Operator, pieces []piece, in []*tensor.Partial, state []byte,
	n, length, from, to int) ([]byte, error) {
	switch {
	case op.Kind == program.Dot:
		return followDot(pieces, in, state, n, length, from, to)
	case op.Kind == program.DotExact:
		return followDotExact(pieces, in, state, n, from, to)
	case summed(op):
		return followSum(op, pieces[0], in, state, n, length, from, to)
	case from == 0:
		return pieces[0].eval(numerics, in)
	case op.Kind == program.AddRows:
		return followAdd(numerics, op, pieces[0], in, state)
	}
	part, err := pieces[0].eval(numerics, in)
	if err != nil {
		return nil, err
	}
	fold := map[program.Kind]program.Kind{program.ReduceSum: program.Add, program.ReduceMax: program.Max,
		program.ReduceMin: program.Min}[op.Kind]
	return both(numerics, fold, op.Out.DType, state, part)
}

// both combines two lists of elements by an elementwise kind.
func both(numerics uint32, k program.Kind, t tensor.DType, x, y []byte) ([]byte, error) {
	shape := tensor.Make(t, len(x)/t.Size())
	a, err := tensor.FromBytes(shape, x)
	if err != nil {
		return nil, err
	}
	b, err := tensor.FromBytes(shape, y)
	if err != nil {
		return nil, err
	}
	out, err := cpu.Eval(numerics, &program.Operator{Kind: k, Out: shape}, []*tensor.Tensor{a, b})
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func followAdd(numerics uint32, op *program.Operator, p piece, in []*tensor.Partial, state []byte) ([]byte, error) {
	if p.op == nil {
		return state, nil
	}
	base, err := tensor.FromBytes(tensor.Make(op.Out.DType, p.op.Out.Elements(), 1), state)
	if err != nil {
		return nil, err
	}
	updates, err := p.in[0].Read(in[p.in[0].Operand])
	if err != nil {
		return nil, err
	}
	out, err := cpu.Eval(numerics, p.op, []*tensor.Tensor{base, tensor.FromI32(p.rows, len(p.rows)), updates})
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// followDot continues the chains of FMA of matmul.Gemm.
func followDot(pieces []piece, in []*tensor.Partial, state []byte, n, length, from, to int) ([]byte, error) {
	sums, chains := make([]float32, n), make([]float32, n)
	if from >= matmul.ChunkK {
		sums = tensor.CopyF32(state[:4*n])
	}
	if from%matmul.ChunkK != 0 {
		chains = tensor.CopyF32(state[len(state)-4*n:])
	}
	done := 0
	for _, p := range pieces {
		l, err := p.in[0].Read(in[p.in[0].Operand])
		if err != nil {
			return nil, err
		}
		r, err := p.in[1].Read(in[p.in[1].Operand])
		if err != nil {
			return nil, err
		}
		rows, cols := p.op.Out.Dims[0], p.op.Out.Dims[1]
		k, column, step := to-from, 1, cols
		if p.op.Ints[3] == 1 {
			column, step = k, 1
		}
		for i := range rows {
			for j := range cols {
				e := done + i*cols + j
				sums[e], chains[e] = matmul.Continue(sums[e], chains[e], l.F32()[i*k:], r.F32()[j*column:], step, length,
					from, to, false)
			}
		}
		done += rows * cols
	}
	switch {
	case to == length || to%matmul.ChunkK == 0:
		return bytesOf(sums), nil
	case to < matmul.ChunkK:
		return bytesOf(chains), nil
	}
	return append(bytesOf(sums), bytesOf(chains)...), nil
}

// followDotExact adds blocks to elements. A link begins and ends between two of them.
func followDotExact(pieces []piece, in []*tensor.Partial, state []byte, n, from, to int) ([]byte, error) {
	sums := make([]float32, n)
	if from > 0 {
		sums = tensor.CopyF32(state)
	}
	done := 0
	for _, p := range pieces {
		l, err := p.in[0].Read(in[p.in[0].Operand])
		if err != nil {
			return nil, err
		}
		r, err := p.in[1].Read(in[p.in[1].Operand])
		if err != nil {
			return nil, err
		}
		g := matmul.Gemm{M: p.op.Out.Dims[0], N: p.op.Out.Dims[1], K: to - from, A: l.F32(), B: r.F32(), C: sums[done:],
			Add: true, Path: kernel.Portable}
		g.ARow, g.ACol, g.CRow = g.K, 1, g.N
		g.BRow, g.BCol = g.N, 1
		if p.op.Ints[3] == 1 {
			g.BRow, g.BCol = 1, g.K
		}
		x := exact.Product{Gemm: g, Form: program.FormOfDot(p.op.Ints)}
		x.Run(1)
		done += g.M * g.N
	}
	return bytesOf(sums), nil
}

// followSum continues the lanes of kernel.Path.Sum, of each element of the output.
func followSum(op *program.Operator, p piece, in []*tensor.Partial, state []byte,
	n, length, from, to int) ([]byte, error) {
	x, err := p.in[0].Read(in[p.in[0].Operand])
	if err != nil {
		return nil, err
	}
	each := kernel.SumState(length)
	lanes := make([]float32, n*each)
	if from > 0 {
		lanes = tensor.CopyF32(state)
	}
	row, step := to-from, 1 // of an element, and from one of its list to the next
	if op.Kind == program.ReduceSum && p.op.Ints[0] == 0 {
		row, step = 1, n
	}
	for e := range n {
		for k := range to - from {
			v := x.F32()[e*row+k*step]
			if op.Kind == program.SumSquares {
				v = float32(v * v)
			}
			kernel.SumPart(lanes[e*each:(e+1)*each], from+k, v)
		}
	}
	if to < length {
		return bytesOf(lanes), nil
	}
	out := make([]float32, n)
	for e := range out {
		out[e] = kernel.SumEnd(lanes[e*each:(e+1)*each], length)
	}
	return bytesOf(out), nil
}

func bytesOf(x []float32) []byte { return tensor.FromF32(x, len(x)).Bytes() }
