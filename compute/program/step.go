package program

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// lowerStep adds an operator that is neither movement nor elementwise.
func (pl *plan) lowerStep(i int) loc {
	op := &pl.p.Ops[i]
	switch op.Kind {
	case Dot:
		return pl.lowerDot(op)
	case ReduceSum, ReduceMax, ReduceMin:
		return pl.lowerReduce(op)
	case SumSquares:
		return pl.addStep([]span{pl.spanOf(op.In[0])}, op.Out, func(_ *Exec, dst []byte, in [][]byte) error {
			tensor.As[float32](dst)[0] = pl.path.SumSquares(tensor.As[float32](in[0]))
			return nil
		})
	case Random:
		return pl.addStep([]span{pl.spanOf(op.In[0])}, op.Out, randomStep)
	case SumWindows:
		return pl.lowerSumWindows(op)
	case FirstMax:
		return pl.lowerFirstMax(op)
	case Iota:
		return pl.addStep(nil, op.Out, iotaStep(op.Out, int(op.Ints[0])))
	case Pad:
		return pl.lowerPad(op)
	case Concat:
		return pl.lowerConcat(op)
	case TakeRows:
		return pl.lowerTakeRows(i)
	case AddRows:
		return pl.lowerAddRows(i)
	case CausalAttention, CausalAttentionLSE, CausalAttentionGradQ, CausalAttentionGradK, CausalAttentionGradV:
		return pl.lowerAttention(i)
	case CrossEntropy, CrossEntropyGrad:
		return pl.lowerCrossEntropy(op)
	}
	panic(fmt.Sprintf("program: %s has passed verification, but nothing computes it", op.Kind))
}

type stepFunc = func(x *Exec, dst []byte, in [][]byte) error

// byType picks the instance of a generic function for an element type. Bool is handled as Uint8.
func byType[F any](d tensor.DType, f32, i8, i32, i64, u8, u32 F) F {
	switch d {
	case tensor.Float32:
		return f32
	case tensor.Int8:
		return i8
	case tensor.Int32:
		return i32
	case tensor.Int64:
		return i64
	case tensor.Uint32:
		return u32
	}
	return u8
}

// bySize picks the instance of a generic function for a size of elements.
func bySize[F any](size int, f1, f2, f4, f8 F) F {
	switch size {
	case 1:
		return f1
	case 2:
		return f2
	case 4:
		return f4
	}
	return f8
}

func iotaStep(s tensor.Shape, axis int) stepFunc {
	inner, dim := view.Elements(s.Dims[axis+1:]), s.Dims[axis]
	return byType(s.DType, iotaOf[float32](inner, dim), iotaOf[int8](inner, dim), iotaOf[int32](inner, dim),
		iotaOf[int64](inner, dim),
		iotaOf[uint8](inner, dim), iotaOf[uint32](inner, dim))
}

func iotaOf[T kernel.Number](inner, dim int) stepFunc {
	return func(_ *Exec, dst []byte, _ [][]byte) error {
		kernel.Iota(tensor.As[T](dst), 0, inner, dim)
		return nil
	}
}

// lowerReduce reduces rows or columns in place; if the axes are neither, it copies to kept dimensions, then reduced.
func (pl *plan) lowerReduce(op *Operator) loc {
	v, s := op.In[0], pl.p.Ops[op.In[0]].Out
	outer, n, inner, ok := reduceDims(s.Dims, op.Ints)
	in := pl.spanOf(v)
	if !ok {
		perm := append(view.Others(s.Rank(), op.Ints), op.Ints...)
		t := pl.at[v].through(pl.at[v].Axes(perm))
		c := pl.addLane(copyLane, []operand{{loc: t, size: s.DType.Size()}}, tensor.Make(s.DType, t.Dims...))
		in = span{c.store, 0, s.Bytes()}
		outer, n, inner = op.Out.Elements(), s.Elements()/op.Out.Elements(), 1
	}
	return pl.addStep([]span{in}, op.Out, pl.reduceStep(op.Kind, s.DType, outer, n, inner))
}

// reduceDims sees dims as [outer, n, inner] with n reduced, if the axes are neighbours.
func reduceDims(dims []int, axes []int64) (outer, n, inner int, ok bool) {
	size := [3]int{1, 1, 1}
	part := 0
	for i, d := range dims {
		reduced := slices.Contains(axes, int64(i))
		if d == 1 {
			continue
		}
		if reduced != (part == 1) {
			part++
		}
		if part > 2 {
			return 0, 0, 0, false
		}
		size[part] *= d
	}
	return size[0], size[1], size[2], true
}

func (pl *plan) reduceStep(k Kind, d tensor.DType, outer, n, inner int) stepFunc {
	switch {
	case d != tensor.Float32:
		return byType(d, nil, foldInt[int8](k, outer, n, inner), foldInt[int32](k, outer, n, inner),
			foldInt[int64](k, outer, n, inner),
			foldInt[uint8](k, outer, n, inner), foldInt[uint32](k, outer, n, inner))
	case k == ReduceSum:
		return reduceRun(outer, n, inner, pl.path.SumRows, pl.path.SumColumns)
	case k == ReduceMax:
		columns := func(dst, x []float32, rows, stride int) { kernel.FoldColumns(pl.path.Max, dst, x, rows, stride) }
		return reduceRun(outer, n, inner, pl.path.MaxRows, columns)
	}
	return foldRun(pl.path.Min, outer, n, inner)
}

func foldInt[T kernel.Integer](k Kind, outer, n, inner int) stepFunc {
	switch k {
	case ReduceSum:
		return foldRun(kernel.Add[T], outer, n, inner)
	case ReduceMax:
		return foldRun(kernel.Max[T], outer, n, inner)
	}
	return foldRun(kernel.Min[T], outer, n, inner)
}

// foldRun is a reduction by a function for which no order needs to be specified.
func foldRun[T kernel.Number](f func(dst, x, y []T), outer, n, inner int) stepFunc {
	rows := func(dst, x []T, n int) { kernel.FoldRows(f, dst, x, n) }
	columns := func(dst, x []T, rows, stride int) { kernel.FoldColumns(f, dst, x, rows, stride) }
	return reduceRun(outer, n, inner, rows, columns)
}

// reduceRun runs a reduction of [outer, n, inner] over n, its results spread over the threads.
func reduceRun[T tensor.Element](outer, n, inner int, rows func(dst, x []T, n int),
	columns func(dst, x []T, rows, stride int)) stepFunc {
	return func(x *Exec, dst []byte, in [][]byte) error {
		to, from := tensor.As[T](dst), tensor.As[T](in[0])
		if inner == 1 {
			x.parallel(outer, n, func(lo, hi int) { rows(to[lo:hi], from[lo*n:hi*n], n) })
			return nil
		}
		x.parallel(outer*inner, n, func(lo, hi int) {
			for lo < hi {
				o, j := lo/inner, lo%inner
				k := min(hi-lo, inner-j)
				columns(to[lo:lo+k], from[o*n*inner+j:(o+1)*n*inner], n, inner)
				lo += k
			}
		})
		return nil
	}
}

func (pl *plan) lowerPad(op *Operator) loc {
	x := pl.p.Ops[op.In[0]].Out
	rank := x.Rank()
	to := view.View{Dims: x.Dims, Strides: make([]int, rank)}
	for i, stride := range view.Strides(op.Out.Dims) {
		to.Offset += int(op.Ints[i]) * stride
		to.Strides[i] = stride * int(op.Ints[2*rank+i]+1)
	}
	to = to.Merged()
	in := []span{pl.spanOf(op.In[0]), pl.spanOf(op.In[1])}
	return pl.addStep(in, op.Out, bySize(x.DType.Size(), padOf[uint8](to), padOf[uint16](to), padOf[uint32](to),
		padOf[int64](to)))
}

func padOf[T kernel.Element](v view.View) stepFunc {
	return func(_ *Exec, dst []byte, in [][]byte) error {
		to := tensor.As[T](dst)
		kernel.Fill(to, tensor.As[T](in[1])[0])
		kernel.Store(to, &v, tensor.As[T](in[0]), 0)
		return nil
	}
}

func (pl *plan) lowerConcat(op *Operator) loc {
	axis := op.Ints[0]
	in := make([]span, len(op.In))
	widths := make([]int, len(op.In))
	for i, v := range op.In {
		in[i] = pl.spanOf(v)
		widths[i] = view.Elements(pl.p.Ops[v].Out.Dims[axis:]) * op.Out.DType.Size()
	}
	rows := view.Elements(op.Out.Dims[:axis])
	return pl.addStep(in, op.Out, func(_ *Exec, dst []byte, in [][]byte) error {
		for r := range rows {
			for i, w := range widths {
				dst = dst[copy(dst, in[i][r*w:(r+1)*w]):]
			}
		}
		return nil
	})
}

func (pl *plan) lowerTakeRows(i int) loc {
	op := &pl.p.Ops[i]
	table, indices := pl.p.Ops[op.In[0]].Out, pl.p.Ops[op.In[1]].Out
	width := view.Elements(table.Dims[1:]) * table.DType.Size() // rows are moved as bytes
	take := takeOf[int32](width, i)
	if indices.DType == tensor.Int64 {
		take = takeOf[int64](width, i)
	}
	return pl.addStep([]span{pl.spanOf(op.In[0]), pl.spanOf(op.In[1])}, op.Out, take)
}

func takeOf[I int32 | int64](width, op int) stepFunc {
	return func(_ *Exec, dst []byte, in [][]byte) error {
		indices := tensor.As[I](in[1])
		if bad := kernel.TakeRows(dst, in[0], indices, width); bad >= 0 {
			return indexError(op, TakeRows, int64(indices[bad]), len(in[0])/width)
		}
		return nil
	}
}

func (pl *plan) lowerAddRows(i int) loc {
	op := &pl.p.Ops[i]
	base, indices := pl.p.Ops[op.In[0]].Out, pl.p.Ops[op.In[1]].Out
	width := view.Elements(base.Dims[1:])
	add := addOf[int32](width, i)
	if indices.DType == tensor.Int64 {
		add = addOf[int64](width, i)
	}
	in := []span{pl.spanOf(op.In[0]), pl.spanOf(op.In[1]), pl.spanOf(op.In[2])}
	l := pl.addStep(in, op.Out, add)
	pl.mayWriteOver(in)
	return l
}

func addOf[I int32 | int64](width, op int) stepFunc {
	return func(x *Exec, dst []byte, in [][]byte) error {
		if &dst[0] != &in[0][0] {
			copy(dst, in[0])
		}
		to, updates, indices := tensor.As[float32](dst), tensor.As[float32](in[2]), tensor.As[I](in[1])
		rows := len(to) / width
		if bad := slices.IndexFunc(indices, func(r I) bool { return r < 0 || int64(r) >= int64(rows) }); bad >= 0 {
			return indexError(op, AddRows, int64(indices[bad]), rows)
		}
		x.parallel(width, len(indices), func(lo, hi int) { kernel.AddRows(to, indices, updates, width, lo, hi) })
		return nil
	}
}

func indexError(op int, k Kind, index int64, rows int) error {
	return &OpError{Index: op, Kind: k, Err: fmt.Errorf("%w: %d of %d rows", ErrIndex, index, rows)}
}
