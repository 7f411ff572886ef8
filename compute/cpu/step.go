package cpu

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/grade"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/lower"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// A boundStep computes a step of a plan.
type boundStep struct {
	run       func(x *Exec) error
	scratch   int // bytes that a worker needs
	registers int // that a worker needs
}

// bind finds the kernels of a step.
func bind(pl *lower.Plan, st *lower.Step, m elementary.Math) boundStep {
	switch {
	case st.Group != nil:
		t := tilerOf(st.Group, pl.Stores, m)
		return boundStep{t.run, t.scratch, len(t.registers)}
	case st.Attention != nil:
		return bindAttention(st.Attention, m)
	case st.Kind.Multiplies():
		return bindDot(st, m.Path)
	}
	if st.Kind == program.Grade {
		return boundStep{run: onMemory(st, gradeStep(st, pl.Program.Ops[st.Op].Data))}
	}
	b := boundStep{run: onMemory(st, kernelOf(st, m))}
	if st.Kind == program.CrossEntropy {
		b.scratch = 4 * st.In[0].Dims[1]
	}
	return b
}

// A stepFunc computes an operator, given the memory of its result and of its operands.
type stepFunc = func(x *Exec, dst []byte, in [][]byte) error

// onMemory gives a stepFunc the memory of a step.
func onMemory(st *lower.Step, f stepFunc) func(x *Exec) error {
	type extent struct{ store, lo, hi int }
	in := make([]extent, len(st.In))
	for i, l := range st.In {
		in[i].store = l.Store
		in[i].lo, in[i].hi = l.Range()
	}
	out, memory := st.Out.Store, make([][]byte, len(in))
	return func(x *Exec) error {
		for i, e := range in {
			memory[i] = x.memory[e.store][e.lo:e.hi]
		}
		err := f(x, x.memory[out], memory)
		clear(memory)
		return err
	}
}

// kernelOf computes a step of one operator on contiguous operands.
func kernelOf(st *lower.Step, m elementary.Math) stepFunc {
	path := m.Path
	switch st.Kind {
	case program.ReduceSum, program.ReduceMax, program.ReduceMin:
		outer, n, inner, _ := view.Middle(st.In[0].Dims, st.Ints)
		return reduceStep(path, st.Kind, st.In[0].Type, outer, n, inner)
	case program.SumSquares:
		return func(_ *Exec, dst []byte, in [][]byte) error {
			tensor.As[float32](dst)[0] = path.SumSquares(tensor.As[float32](in[0]))
			return nil
		}
	case program.Random:
		return randomStep
	case program.SumWindows:
		return sumWindowsStep(st)
	case program.FirstMax:
		return firstMaxStep(view.Elements(view.Pick(st.In[0].Dims, st.Ints)))
	case program.Iota:
		return iotaStep(st.Out, int(st.Ints[0]))
	case program.Pad:
		return padStep(st)
	case program.Concat:
		return concatStep(st)
	case program.TakeRows:
		return takeStep(st)
	case program.AddRows:
		return addStep(st)
	case program.CrossEntropy, program.CrossEntropyGrad:
		return crossEntropyStep(st, m)
	}
	panic(fmt.Sprintf("cpu: %s has passed verification, but nothing computes it", st.Kind))
}

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

// byIndex picks the instance of a generic function for a type of indices.
func byIndex[F any](d tensor.DType, i32, i64 F) F {
	if d == tensor.Int64 {
		return i64
	}
	return i32
}

func iotaStep(out lower.Location, axis int) stepFunc {
	inner, dim := view.Elements(out.Dims[axis+1:]), out.Dims[axis]
	return byType(out.Type, iotaOf[float32](inner, dim), iotaOf[int8](inner, dim), iotaOf[int32](inner, dim),
		iotaOf[int64](inner, dim), iotaOf[uint8](inner, dim), iotaOf[uint32](inner, dim))
}

func iotaOf[T kernel.Number](inner, dim int) stepFunc {
	return func(_ *Exec, dst []byte, _ [][]byte) error {
		kernel.Iota(tensor.As[T](dst), 0, inner, dim)
		return nil
	}
}

func padStep(st *lower.Step) stepFunc {
	to := st.Padded()
	return bySize(st.In[0].Type.Size(), padOf[uint8](to), padOf[uint16](to), padOf[uint32](to), padOf[int64](to))
}

func padOf[T kernel.Element](v view.View) stepFunc {
	return func(_ *Exec, dst []byte, in [][]byte) error {
		to := tensor.As[T](dst)
		kernel.Fill(to, tensor.As[T](in[1])[0])
		kernel.Store(to, &v, tensor.As[T](in[0]), 0)
		return nil
	}
}

func concatStep(st *lower.Step) stepFunc {
	axis := st.Ints[0]
	widths := make([]int, len(st.In))
	for i, x := range st.In {
		widths[i] = view.Elements(x.Dims[axis:]) * x.Type.Size()
	}
	rows := view.Elements(st.Out.Dims[:axis])
	return func(_ *Exec, dst []byte, in [][]byte) error {
		for r := range rows {
			for i, w := range widths {
				dst = dst[copy(dst, in[i][r*w:(r+1)*w]):]
			}
		}
		return nil
	}
}

func takeStep(st *lower.Step) stepFunc {
	table := st.In[0]
	width := view.Elements(table.Dims[1:]) * table.Type.Size() // rows are moved as bytes
	return byIndex(st.In[1].Type, takeOf[int32](width, st.Op), takeOf[int64](width, st.Op))
}

func takeOf[I int32 | int64](width, op int) stepFunc {
	return func(_ *Exec, dst []byte, in [][]byte) error {
		indices := tensor.As[I](in[1])
		if bad := kernel.TakeRows(dst, in[0], indices, width); bad >= 0 {
			return program.IndexError(op, program.TakeRows, int64(indices[bad]), len(in[0])/width)
		}
		return nil
	}
}

func addStep(st *lower.Step) stepFunc {
	width := view.Elements(st.In[0].Dims[1:])
	return byIndex(st.In[1].Type, addOf[int32](width, st.Op), addOf[int64](width, st.Op))
}

func addOf[I int32 | int64](width, op int) stepFunc {
	return func(x *Exec, dst []byte, in [][]byte) error {
		if &dst[0] != &in[0][0] {
			copy(dst, in[0])
		}
		to, updates, indices := tensor.As[float32](dst), tensor.As[float32](in[2]), tensor.As[I](in[1])
		rows := len(to) / width
		if bad := slices.IndexFunc(indices, func(r I) bool { return r < 0 || int64(r) >= int64(rows) }); bad >= 0 {
			return program.IndexError(op, program.AddRows, int64(indices[bad]), rows)
		}
		x.parallel(width, len(indices), func(lo, hi int) { kernel.AddRows(to, indices, updates, width, lo, hi) })
		return nil
	}
}

// sumWindowsStep spreads the work over the first dimension if no two windows share an element across it.
func sumWindowsStep(st *lower.Step) stepFunc {
	rank, dims := len(st.Out.Dims), st.In[0].Dims
	windows := view.Dense(st.Out.Dims).Windows(dims, st.Ints[rank:2*rank], st.Ints[2*rank:])
	parts, each := 1, view.Elements(dims)
	if rank > 0 && st.Ints[0] == 1 {
		parts, each = dims[0], view.Elements(dims[1:])
	}
	return func(x *Exec, dst []byte, in [][]byte) error {
		to, from := tensor.As[float32](dst), tensor.As[float32](in[0])
		clear(to)
		x.parallel(parts, each, func(lo, hi int) { kernel.AddTo(to, &windows, from[lo*each:hi*each], lo*each) })
		return nil
	}
}

// firstMaxStep marks lists of n neighbours.
func firstMaxStep(n int) stepFunc {
	return func(x *Exec, dst []byte, in [][]byte) error {
		from := tensor.As[float32](in[0])
		x.parallel(len(dst)/n, n, func(lo, hi int) { kernel.FirstMax(dst[lo*n:hi*n], from[lo*n:hi*n], n) })
		return nil
	}
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

// gradeStep rewards answers by a rule, which is decoded at once.
func gradeStep(st *lower.Step, rule []byte) stepFunc {
	grader, err := grade.Decode(rule)
	length, each := st.In[0].Dims[1], st.In[1].Dims[1]
	group := st.In[1].Dims[0] / st.In[0].Dims[0]
	return func(x *Exec, dst []byte, in [][]byte) error {
		if err != nil {
			return err
		}
		to, examples, answers := tensor.As[float32](dst), tensor.As[int32](in[0]), tensor.As[int32](in[1])
		x.parallel(len(to), gradeCost, func(lo, hi int) {
			grader.Rewards(to, examples, answers, length, each, group, lo, hi)
		})
		return nil
	}
}

// gradeCost is the work of a reward in additions, about.
const gradeCost = 1 << 13

func crossEntropyStep(st *lower.Step, m elementary.Math) stepFunc {
	n := st.In[0].Dims[1]
	return byIndex(st.In[1].Type, crossEntropyOf[int32](st.Kind, m, n), crossEntropyOf[int64](st.Kind, m, n))
}

func crossEntropyOf[I int32 | int64](k program.Kind, m elementary.Math, n int) stepFunc {
	return func(x *Exec, dst []byte, in [][]byte) error {
		to, logits, targets := tensor.As[float32](dst), tensor.As[float32](in[0]), tensor.As[I](in[1])
		x.share(len(targets), 8*n, func(w *worker, lo, hi int) {
			rows := logits[lo*n : hi*n]
			if k == program.CrossEntropy {
				elementary.CrossEntropy(m, to[lo:hi], rows, targets[lo:hi], n, tensor.As[float32](w.scratch))
			} else {
				elementary.CrossEntropyGrad(m, to[lo*n:hi*n], rows, targets[lo:hi], tensor.As[float32](in[2])[lo:hi], n)
			}
		})
		return nil
	}
}
