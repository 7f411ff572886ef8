package suite

import (
	"fmt"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// writer writes a program whose values are outputs.
type writer struct{ b *program.Builder }

// must returns a value of the suite's own programs, which are right whatever the device.
func must(v program.Value, err error) program.Value {
	if err != nil {
		panic(fmt.Sprintf("suite: %v", err))
	}
	return v
}

func (w writer) float(name string, dims ...int) program.Value {
	return w.b.Input(name, tensor.Make(tensor.Float32, dims...))
}

func (w writer) out(name string, v program.Value, err error) { w.b.Output(name, must(v, err)) }

// finish returns the program as a case.
func (w writer) finish(name string, swept bool) testcase {
	p, err := w.b.Finish()
	if err != nil {
		panic(fmt.Sprintf("suite: %v", err))
	}
	return testcase{name, p, swept}
}

// cases are the programs of the suite in a version of the numerics: those of version 1, and in a later one those whose
// operators it changes. Few programs with many outputs: a driver compiles each.
func cases(numerics uint32, elements int) (list []testcase) {
	list = []testcase{functions(elements), pairs(elements), losses(), heads(), integers(elements / 4), products(), sums(),
		blocks(), places()}
	if numerics != kernel.Version1 {
		list = list[:4]
	}
	for i := range list {
		list[i].program = list[i].program.In(numerics)
	}
	return list
}

// functions are those of one float32.
func functions(n int) testcase {
	w := writer{program.NewBuilder()}
	x := w.float("x", n)
	for _, k := range []program.Kind{program.Neg, program.Abs, program.Sign, program.Exp, program.Log, program.Tanh,
		program.Erf, program.Logistic, program.Sqrt, program.Rsqrt, program.Sin, program.Cos, program.Floor, program.Ceil,
		program.Round, program.Gelu, program.Silu} {
		v, err := w.b.Apply(k, x)
		w.out(k.String(), v, err)
	}
	for _, to := range []tensor.DType{tensor.Int8, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint32, tensor.Bool,
		tensor.Float16, tensor.BFloat16} {
		v := must(w.b.Convert(x, to))
		w.b.Output(fmt.Sprintf("Convert to %s", to), v)
		back, err := w.b.Convert(v, tensor.Float32)
		w.out(fmt.Sprintf("Convert from %s", to), back, err)
	}
	return w.finish("functions", true)
}

// pairs are functions of several float32, and a product that feeds a sum and must not be contracted.
func pairs(n int) testcase {
	w := writer{program.NewBuilder()}
	x, y, z := w.float("x", n), w.float("y", n), w.float("z", n)
	for _, k := range []program.Kind{program.Add, program.Sub, program.Mul, program.Div, program.Max, program.Min,
		program.Pow, program.GeluGrad, program.SiluGrad, program.Equal, program.NotEqual, program.Less, program.LessEqual,
		program.Greater, program.GreaterEqual, program.Quantize} {
		v, err := w.b.Apply(k, x, y)
		w.out(k.String(), v, err)
	}
	product := must(w.b.Apply(program.Mul, x, y))
	sum, err := w.b.Apply(program.Add, product, z)
	w.out("Add of a product", sum, err)
	less, above := must(w.b.Apply(program.Less, x, y)), must(w.b.Apply(program.Greater, x, z))
	chosen, err := w.b.Apply(program.Where, less, y, z)
	w.out("Where", chosen, err)
	not, err := w.b.Apply(program.Not, less)
	w.out("Not", not, err)
	for _, k := range []program.Kind{program.And, program.Or} {
		v, err := w.b.Apply(k, less, above)
		w.out(k.String(), v, err)
	}
	codes := must(w.b.Apply(program.Quantize, x, y))
	number, err := w.b.Apply(program.Dequantize, codes, z)
	w.out("Dequantize", number, err)
	moments(w, x, y, z)
	return w.finish("pairs", false)
}

// moments are the operators of Adam.
func moments(w writer, x, y, z program.Value) {
	scalar := func(v float32) program.Value { return w.b.Constant(tensor.Scalar(v)) }
	scale := scalar(0.7)
	m, err := w.b.Moment(program.AdamM, x, y, scale, 0.9)
	w.out("AdamM", m, err)
	v, err := w.b.Moment(program.AdamV, x, y, scale, 0.95)
	w.out("AdamV", v, err)
	p, err := w.b.AdamP(x, y, z, scalar(0.003), scalar(1.5), scalar(1.25), 1e-8, 0.1)
	w.out("AdamP", p, err)
}

// integers are the operators of every type of whole numbers.
func integers(n int) testcase {
	w := writer{program.NewBuilder()}
	x, y := w.float("x", n), w.float("y", n)
	for _, d := range []tensor.DType{tensor.Int8, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint32} {
		a, b := must(w.b.Convert(x, d)), must(w.b.Convert(y, d))
		for _, k := range []program.Kind{program.Add, program.Sub, program.Mul, program.Div, program.Max, program.Min,
			program.Less, program.Equal} {
			v, err := w.b.Apply(k, a, b)
			w.out(fmt.Sprintf("%s of %s", k, d), v, err)
		}
		for _, k := range []program.Kind{program.Neg, program.Abs, program.Sign} {
			v, err := w.b.Apply(k, a)
			w.out(fmt.Sprintf("%s of %s", k, d), v, err)
		}
	}
	return w.finish("integers", false)
}

// products are matrix products around the sizes of tiles and of chunks, with both operands as they are and transposed.
func products() testcase {
	w := writer{program.NewBuilder()}
	for i, s := range [][3]int{{1, 1, 1}, {3, 5, 511}, {64, 64, 512}, {65, 33, 513}, {17, 70, 1100}, {70, 130, 37},
		{96, 40, 1537}} {
		m, n, k := s[0], s[1], s[2]
		name := fmt.Sprintf("Dot of %d x %d x %d", m, k, n)
		a, b := w.float(fmt.Sprintf("a%d", i), m, k), w.float(fmt.Sprintf("b%d", i), k, n)
		v, err := w.b.Dot(a, []int{1}, nil, b, []int{0}, nil)
		w.out(name, v, err)
		c := w.float(fmt.Sprintf("c%d", i), n, k)
		v, err = w.b.Dot(a, []int{1}, nil, c, []int{1}, nil)
		w.out(name+", rhs transposed", v, err)
		v, err = w.b.Dot(w.float(fmt.Sprintf("d%d", i), k, m), []int{0}, nil, b, []int{0}, nil)
		w.out(name+", lhs transposed", v, err)
	}
	x, y := w.float("x", 3, 20, 2, 8), w.float("y", 3, 20, 2, 8)
	v, err := w.b.Dot(x, []int{3}, []int{0, 2}, y, []int{3}, []int{0, 2})
	w.out("Dot of a batch", v, err)
	return w.finish("products", false)
}

// blocks are products of integers around the sizes of tiles and of blocks, with both operands as they are and
// transposed.
func blocks() testcase {
	w := writer{program.NewBuilder()}
	for i, s := range [][3]int{{1, 1, 1}, {3, 5, 31}, {65, 7, 64}, {17, 66, 65}, {5, 9, 300}} {
		m, n, k := s[0], s[1], s[2]
		a, b := w.float(fmt.Sprintf("a%d", i), m, k), w.float(fmt.Sprintf("b%d", i), k, n)
		c, d := w.float(fmt.Sprintf("c%d", i), n, k), w.float(fmt.Sprintf("d%d", i), k, m)
		for _, f := range []exact.Form{{Bits: 8, Block: 32}, {Bits: 8, Block: 64}, {Bits: 15, Block: 32},
			{Bits: 15, Block: 64}} {
			name := fmt.Sprintf("DotExact of %d x %d x %d with %d bits in blocks of %d", m, k, n, f.Bits, f.Block)
			dot := func(name string, lhs, rhs program.Value, over, with int64) {
				v, err := w.b.Append(program.Operator{Kind: program.DotExact, In: []int32{int32(lhs), int32(rhs)},
					Ints: []int64{1, 0, over, with, int64(f.Bits), int64(f.Block)}})
				w.out(name, v, err)
			}
			dot(name, a, b, 1, 0)
			dot(name+", rhs transposed", a, c, 1, 1)
			dot(name+", lhs transposed", d, b, 0, 0)
		}
	}
	// Blocks around the largest that are numbers: the ordinary ones are at most 2.
	x, y := w.float("x", 20, 64), w.float("y", 64, 3)
	for i, scale := range []float32{0x1p44, 0x1p51} {
		bits := []int64{8, 15}[i]
		factors := must(w.b.Broadcast(w.b.Constant(tensor.Scalar(scale)), []int{20, 64}, nil))
		v, err := w.b.Append(program.Operator{Kind: program.DotExact, Ints: []int64{1, 0, 1, 0, bits, 64},
			In: []int32{int32(must(w.b.Apply(program.Mul, x, factors))), int32(y)}})
		w.out(fmt.Sprintf("DotExact of large numbers with %d bits", bits), v, err)
	}
	return w.finish("blocks", false)
}

// places are tensors that are made of places or of random words, and elements that are put, taken or added by them.
func places() testcase {
	w := writer{program.NewBuilder()}
	for _, d := range []tensor.DType{tensor.Float32, tensor.Int8, tensor.Int32, tensor.Int64, tensor.Uint8,
		tensor.Uint32} {
		v, err := w.b.Iota(tensor.Make(d, 3, 300, 2), 1)
		w.out("Iota of "+d.String(), v, err)
	}
	v, err := w.b.Random(w.b.Input("key", tensor.Make(tensor.Int64, 3)), 1001)
	w.out("Random", v, err)
	x := w.float("x", 5, 7, 3)
	for _, d := range []tensor.DType{tensor.Uint8, tensor.Float16, tensor.Float32, tensor.Int64} {
		fill := must(w.b.Convert(w.b.Constant(tensor.Scalar(3)), d))
		v, err = w.b.Pad(must(w.b.Convert(x, d)), fill, []int{1, 0, 2}, []int{0, 3, 1}, []int{2, 0, 1})
		w.out("Pad of "+d.String(), v, err)
	}
	v, err = w.b.Append(program.Operator{Kind: program.FirstMax, In: []int32{int32(w.float("lists", 40, 9))},
		Ints: []int64{1}})
	w.out("FirstMax", v, err)
	for i, s := range []struct{ dims, sizes, strides, apart, windows []int }{
		{[]int{40}, []int{5}, []int{2}, []int{3}, []int{14, 5}},
		{[]int{2, 9, 8, 3}, []int{1, 3, 2, 3}, []int{1, 1, 2, 1}, []int{1, 2, 1, 1}, []int{2, 5, 4, 1, 1, 3, 2, 3}},
	} {
		windows := w.float(fmt.Sprintf("windows%d", i), s.windows...)
		v, err = w.b.SumWindows(windows, s.dims, s.sizes, s.strides, s.apart)
		w.out(fmt.Sprintf("SumWindows of %d dimensions", len(s.dims)), v, err)
	}
	return w.finish("places", false)
}

// sums are reductions of rows and of columns around the sizes of lanes and of pieces.
func sums() testcase {
	w := writer{program.NewBuilder()}
	for i, n := range []int{1, 15, 16, 17, 4095, 4096, 4097, 70000} {
		rows := min(5, 1+100000/n)
		x := w.float(fmt.Sprintf("x%d", i), rows, n)
		y := w.float(fmt.Sprintf("y%d", i), n, rows)
		for _, k := range []program.Kind{program.ReduceSum, program.ReduceMax, program.ReduceMin} {
			v, err := w.b.Reduce(k, x, 1)
			w.out(fmt.Sprintf("%s of rows of %d", k, n), v, err)
			v, err = w.b.Reduce(k, y, 0)
			w.out(fmt.Sprintf("%s of columns of %d", k, n), v, err)
		}
		v, err := w.b.Apply(program.SumSquares, x)
		w.out(fmt.Sprintf("SumSquares of %d x %d", rows, n), v, err)
	}
	whole := must(w.b.Convert(w.float("z", 4, 300), tensor.Int32))
	v, err := w.b.Reduce(program.ReduceSum, whole, 1)
	w.out("ReduceSum of int32", v, err)
	return w.finish("sums", false)
}

// losses are cross-entropies around the sizes of lanes and pieces, and rows that indices address.
func losses() testcase {
	w := writer{program.NewBuilder()}
	for i, n := range []int{5, 16, 100, 4096, 9000} {
		logits, d := w.float(fmt.Sprintf("x%d", i), 6, n), w.float(fmt.Sprintf("d%d", i), 6)
		targets := w.b.Input(fmt.Sprintf("t%d", i), tensor.Make(tensor.Int32, 6))
		v, err := w.b.Apply(program.CrossEntropy, logits, targets)
		w.out(fmt.Sprintf("CrossEntropy of %d classes", n), v, err)
		v, err = w.b.Apply(program.CrossEntropyGrad, logits, targets, d)
		w.out(fmt.Sprintf("CrossEntropyGrad of %d classes", n), v, err)
	}
	table, rows := w.float("table", smallest, 33), w.b.Input("rows", tensor.Make(tensor.Int32, 70))
	v, err := w.b.Apply(program.TakeRows, table, rows)
	w.out("TakeRows", v, err)
	v, err = w.b.Apply(program.AddRows, table, rows, w.float("updates", 70, 33))
	w.out("AddRows", v, err)
	v, err = w.b.Concat(1, w.float("left", 7, 5), w.float("right", 7, 9))
	w.out("Concat", v, err)
	return w.finish("losses", false)
}

// heads are attention and its gradients, with keys that heads share, over several blocks and more than a chunk.
func heads() testcase {
	w := writer{program.NewBuilder()}
	for _, s := range []struct{ heads, groups, length, width int }{{2, 1, 130, 16}, {1, 1, 600, 8}} {
		name := func(of string) string { return fmt.Sprintf("%s of %d queries", of, s.length) }
		queries := func(n string) program.Value { return w.float(name(n), 1, s.heads, s.length, s.width) }
		keys := func(n string) program.Value { return w.float(name(n), 1, s.groups, s.length, s.width) }
		q, k, v, do := queries("q"), keys("k"), keys("v"), queries("do")
		lse, delta := w.float(name("lse"), 1, s.heads, s.length), w.float(name("delta"), 1, s.heads, s.length)
		for _, o := range []struct {
			kind     program.Kind
			operands []program.Value
		}{
			{program.CausalAttention, []program.Value{q, k, v}}, {program.CausalAttentionLSE, []program.Value{q, k}},
			{program.CausalAttentionGradQ, []program.Value{q, k, v, do, lse, delta}},
			{program.CausalAttentionGradK, []program.Value{q, k, v, do, lse, delta}},
			{program.CausalAttentionGradV, []program.Value{q, k, do, lse}},
		} {
			v, err := w.b.Attention(o.kind, 0, 0, o.operands...)
			w.out(name(o.kind.String()), v, err)
		}
	}
	return w.finish("heads", false)
}
