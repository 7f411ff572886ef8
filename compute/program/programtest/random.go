// Package programtest has the programs on which tests try what plans, runs and takes apart programs, and an oracle:
// every kind of operator, element by element as its Kind says and without regard to speed. It is imported by tests
// alone.
package programtest

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/starling-network/starling/compute/grade/gradetest"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// A writer makes random programs that use every kind, on small tensors full of special values.
type writer struct {
	t testing.TB
	r *rand.Rand
	b *program.Builder
	n int // values so far
}

// Types are all types of elements.
var Types = []tensor.DType{tensor.Float32, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Bool, tensor.Uint32,
	tensor.Int8, tensor.Float16, tensor.BFloat16}

var specials = []uint32{0, 1 << 31, 1, 1<<31 | 1, 0x007fffff, 0x00800000, 0x7f7fffff, 0xff7fffff, 0x7f800000,
	0xff800000,
	0x7fc00000, 0xffc00001, 0x7f800001, 0x3f800000, 0xbf800000, 0x4f000000, 0xcf000000, 0x5f000000, 0x3f000000, 0x40200000}

// Tensor is a random tensor; a wild one has special values.
func Tensor(r *rand.Rand, s tensor.Shape, wild bool) *tensor.Tensor {
	t := tensor.New(s)
	for i := range s.Elements() {
		switch s.DType {
		case tensor.Float32:
			t.F32()[i] = float32(float64(4*r.Float64()) - 2) // exact, unlike a normal deviate: the same on every port
			if wild && r.IntN(4) == 0 {
				t.F32()[i] = math.Float32frombits(specials[r.IntN(len(specials))])
			}
		case tensor.Bool:
			t.Bytes()[i] = uint8(r.IntN(2))
		default:
			small := int64(r.IntN(7)) - 3
			if wild && r.IntN(3) == 0 {
				small = int64(r.Uint64())
			}
			for j := range s.DType.Size() {
				t.Bytes()[i*s.DType.Size()+j] = byte(small >> (8 * j))
			}
		}
	}
	return t
}

func (w *writer) dims(rank, most int) []int {
	d := make([]int, rank)
	for i := range d {
		d[i] = 1 + w.r.IntN(most)
	}
	return d
}

// value returns a value of type d, an old one if there is any, and a new input or constant otherwise.
func (w *writer) value(d tensor.DType) program.Value {
	var old []program.Value
	for v := range program.Value(w.n) {
		if s := w.b.Shape(v); s.DType == d && s.Elements() <= 5000 {
			old = append(old, v)
		}
	}
	if len(old) > 0 && w.r.IntN(6) > 0 {
		return old[max(len(old)-1-w.r.IntN(8), w.r.IntN(len(old)))]
	}
	return w.source(tensor.Make(d, w.dims(w.r.IntN(4), 9)...))
}

func (w *writer) source(s tensor.Shape) program.Value {
	if w.r.IntN(4) == 0 {
		return w.keep(w.b.Constant(Tensor(w.r, s, true)), nil)
	}
	return w.keep(w.b.Input(string(rune('a'+w.n%26))+string(rune('a'+w.n/26)), s), nil)
}

// like returns a value of exactly the shape s.
func (w *writer) like(s tensor.Shape) program.Value {
	var old []program.Value
	for v := range program.Value(w.n) {
		if w.b.Shape(v).Equal(s) {
			old = append(old, v)
		}
	}
	if len(old) > 0 && w.r.IntN(3) > 0 {
		return old[w.r.IntN(len(old))]
	}
	if w.r.IntN(2) == 0 { // broadcast a scalar or the last dimension
		keep := min(w.r.IntN(2), len(s.Dims))
		x := w.source(tensor.Make(s.DType, s.Dims[len(s.Dims)-keep:]...))
		axes := []int{len(s.Dims) - 1}[:keep]
		return w.keep(w.b.Broadcast(x, s.Dims, axes))
	}
	return w.source(s)
}

func (w *writer) keep(v program.Value, err error) program.Value {
	if err != nil {
		w.t.Fatal(err)
	}
	w.n = int(v) + 1
	return v
}

func (w *writer) anyType() tensor.DType {
	if w.r.IntN(3) > 0 {
		return tensor.Float32
	}
	return Types[w.r.IntN(len(Types))]
}

func (w *writer) numberType() tensor.DType { return w.typeThat(number) }

func (w *writer) typeThat(ok func(tensor.DType) bool) tensor.DType {
	for {
		if d := w.anyType(); ok(d) {
			return d
		}
	}
}

// step adds one operator of the given kind, with the operands it needs.
func (w *writer) step(k program.Kind) program.Value {
	b, r := w.b, w.r
	switch {
	case k == program.Convert:
		return w.keep(b.Convert(w.value(w.anyType()), w.anyType()))
	case k == program.Not:
		return w.keep(b.Apply(k, w.value(tensor.Bool)))
	case k == program.Identity:
		return w.keep(b.Apply(k, w.value(w.anyType())))
	case k >= program.Neg && k <= program.Sign:
		return w.keep(b.Apply(k, w.value(w.numberType())))
	case k >= program.Exp && k <= program.Round:
		return w.keep(b.Apply(k, w.value(tensor.Float32)))
	case k == program.Pow:
		x := w.value(tensor.Float32)
		return w.keep(b.Apply(k, x, w.like(b.Shape(x))))
	case k == program.And || k == program.Or:
		x := w.value(tensor.Bool)
		return w.keep(b.Apply(k, x, w.like(b.Shape(x))))
	case k >= program.Add && k <= program.Min:
		x := w.value(w.numberType())
		return w.keep(b.Apply(k, x, w.like(b.Shape(x))))
	case k >= program.Equal && k <= program.GreaterEqual:
		d := w.numberType()
		if k <= program.NotEqual {
			d = w.typeThat(countable)
		}
		x := w.value(d)
		return w.keep(b.Apply(k, x, w.like(b.Shape(x))))
	case k == program.Where:
		x := w.value(w.anyType())
		s := b.Shape(x)
		return w.keep(b.Apply(program.Where, w.like(tensor.Make(tensor.Bool, s.Dims...)), x, w.like(s)))
	case k >= program.Reshape && k <= program.Windows:
		return w.move(k)
	case k == program.Iota:
		d := w.dims(1+r.IntN(3), 6)
		return w.keep(b.Iota(tensor.Make(w.numberType(), d...), r.IntN(len(d))))
	case k >= program.AdamM && k <= program.AdamP:
		return w.adam(k)
	case k >= program.CausalAttention && k <= program.CausalAttentionGradV:
		return w.attention(k)
	case k == program.Gelu || k == program.Silu:
		return w.keep(b.Apply(k, w.value(tensor.Float32)))
	case k == program.GeluGrad || k == program.SiluGrad:
		x := w.value(tensor.Float32)
		return w.keep(b.Apply(k, x, w.like(b.Shape(x))))
	case k == program.CrossEntropy || k == program.CrossEntropyGrad:
		return w.crossEntropy(k)
	case k == program.Quantize:
		x := w.value(tensor.Float32)
		return w.keep(b.Apply(program.Quantize, x, w.like(b.Shape(x))))
	case k == program.Dequantize:
		x := w.value(tensor.Int8)
		return w.keep(b.Apply(program.Dequantize, x, w.like(tensor.Make(tensor.Float32, b.Shape(x).Dims...))))
	}
	return w.heavy(k)
}

func (w *writer) move(k program.Kind) program.Value {
	b, r := w.b, w.r
	x := w.value(w.anyType())
	s := b.Shape(x)
	rank := s.Rank()
	switch k {
	case program.Reshape:
		return w.keep(b.Reshape(x, w.split(s.Elements())...))
	case program.Transpose:
		return w.keep(b.Transpose(x, r.Perm(rank)...))
	case program.Broadcast:
		if rank > 3 {
			return x
		}
		out := w.dims(rank+1, 4)
		axes := r.Perm(rank + 1)[:rank]
		for i, a := range axes {
			if s.Dims[i] != 1 {
				out[a] = s.Dims[i]
			}
		}
		return w.keep(b.Broadcast(x, out, axes))
	case program.Slice:
		starts, limits, strides := make([]int, rank), make([]int, rank), make([]int, rank)
		for i, d := range s.Dims {
			starts[i] = r.IntN(d)
			limits[i] = starts[i] + 1 + r.IntN(d-starts[i])
			strides[i] = 1 + r.IntN(min(d, 2))
		}
		return w.keep(b.Slice(x, starts, limits, strides))
	case program.Pad:
		low, high, interior := w.dims(rank, 3), w.dims(rank, 3), w.dims(rank, 2)
		for i := range interior {
			low[i]--
			high[i]--
			interior[i]--
		}
		return w.keep(b.Pad(x, w.like(tensor.Make(s.DType)), low, high, interior))
	case program.Concat:
		if rank == 0 {
			return x
		}
		axis := r.IntN(rank)
		other := s.Clone()
		other.Dims[axis] = 1 + r.IntN(4)
		return w.keep(b.Concat(axis, x, w.like(other), x))
	case program.Windows:
		if rank > tensor.MaxRank/2 || s.Elements() > 500 {
			return x
		}
		return w.keep(w.windows(x))
	}
	return w.keep(b.Reverse(x, r.Perm(rank)[:r.IntN(rank+1)]...))
}

// window returns sizes, strides and dilations of windows that fit into dims.
func (w *writer) window(dims []int) (sizes, strides, dilations []int) {
	for _, d := range dims {
		size := 1 + w.r.IntN(min(d, 3))
		dilation := 1
		if size > 1 {
			dilation += w.r.IntN(min(2, (d-1)/(size-1)))
		}
		sizes, strides, dilations = append(sizes, size), append(strides, 1+w.r.IntN(3)), append(dilations, dilation)
	}
	return sizes, strides, dilations
}

func (w *writer) windows(x program.Value) (program.Value, error) {
	sizes, strides, dilations := w.window(w.b.Shape(x).Dims)
	return w.b.Windows(x, sizes, strides, dilations)
}

func (w *writer) sumWindows() program.Value {
	dims := w.dims(w.r.IntN(5), 5)
	sizes, strides, dilations := w.window(dims)
	in := make([]int, len(dims))
	for i, d := range dims {
		in[i] = (d-(sizes[i]-1)*dilations[i]-1)/strides[i] + 1
	}
	return w.keep(w.b.SumWindows(w.like(tensor.Make(tensor.Float32, append(in, sizes...)...)), dims, sizes, strides,
		dilations))
}

// split returns dimensions with n elements.
func (w *writer) split(n int) []int {
	var d []int
	for n > 1 && len(d) < 5 {
		var divisors []int
		for k := 1; k <= n; k++ {
			if n%k == 0 {
				divisors = append(divisors, k)
			}
		}
		k := divisors[w.r.IntN(len(divisors))]
		d = append(d, k)
		n /= k
	}
	return append(d, n)
}

func (w *writer) adam(k program.Kind) program.Value {
	x := w.value(tensor.Float32)
	s := w.b.Shape(x)
	scalar := func() program.Value { return w.like(tensor.Make(tensor.Float32)) }
	switch k {
	case program.AdamM:
		return w.keep(w.b.Moment(program.AdamM, x, w.like(s), scalar(), 0.9))
	case program.AdamV:
		return w.keep(w.b.Moment(program.AdamV, x, w.like(s), scalar(), 0.999))
	}
	return w.keep(w.b.AdamP(x, w.like(s), w.like(s), scalar(), scalar(), scalar(), 1e-8, 0.1))
}

func (w *writer) heavy(k program.Kind) program.Value {
	b, r := w.b, w.r
	switch k {
	case program.Dot, program.DotExact:
		return w.dot(k)
	case program.ReduceSum, program.ReduceMax, program.ReduceMin:
		x := w.value(w.numberType())
		rank := b.Shape(x).Rank()
		return w.keep(b.Reduce(k, x, r.Perm(rank)[:r.IntN(rank+1)]...))
	case program.Grade:
		n, tokens := 1+r.IntN(3), 1+r.IntN(5)
		x, y := w.like(tensor.Make(tensor.Int32, n, 1+r.IntN(6))), w.like(tensor.Make(tensor.Int32, n*(1+r.IntN(3)), tokens))
		return w.keep(b.Append(program.Operator{Kind: k, In: []int32{int32(x), int32(y)},
			Ints: []int64{gradetest.Cost(w.t, tokens)}, Data: gradetest.Rule()}))
	case program.SumSquares:
		return w.keep(b.Apply(program.SumSquares, w.value(tensor.Float32)))
	case program.FirstMax:
		x := w.value(tensor.Float32)
		rank := b.Shape(x).Rank()
		return w.keep(b.Reduce(program.FirstMax, x, r.Perm(rank)[:r.IntN(rank+1)]...))
	case program.SumWindows:
		return w.sumWindows()
	case program.Random:
		return w.keep(b.Random(w.like(tensor.Make(tensor.Int64, 3)), w.dims(r.IntN(4), 6)...))
	}
	rows := 1 + r.IntN(6)
	index := tensor.New(tensor.Make([]tensor.DType{tensor.Int32, tensor.Int64}[r.IntN(2)], w.dims(r.IntN(3), 4)...))
	for i := range index.Shape.Elements() {
		index.Bytes()[i*index.Shape.DType.Size()] = byte(r.IntN(rows))
	}
	ix := w.keep(b.Constant(index), nil)
	columns := w.dims(r.IntN(3), 5)
	d := w.anyType()
	if k == program.AddRows {
		d = tensor.Float32
	}
	table := w.like(tensor.Make(d, append([]int{rows}, columns...)...))
	if k == program.TakeRows {
		return w.keep(b.Apply(program.TakeRows, table, ix))
	}
	updates := w.like(tensor.Make(d, slices.Concat(index.Shape.Dims, columns)...))
	return w.keep(b.Apply(program.AddRows, table, ix, updates))
}

// dot multiplies a value with one made to fit some of its axes, in any order.
func (w *writer) dot(k program.Kind) program.Value {
	b, r := w.b, w.r
	x := w.value(tensor.Float32)
	s := b.Shape(x)
	roles := r.Perm(s.Rank())
	c := r.IntN(len(roles) + 1)
	batch := r.IntN(len(roles) - c + 1)
	lhsContract, lhsBatch := roles[:c], roles[c:c+batch]
	shared := slices.Concat(lhsContract, lhsBatch)
	free := w.dims(r.IntN(3), 5)
	place := r.Perm(len(shared) + len(free)) // where each shared axis, then each free one, is in rhs
	dims := make([]int, len(place))
	for i, p := range place {
		if i < len(shared) {
			dims[p] = s.Dims[shared[i]]
		} else {
			dims[p] = free[i-len(shared)]
		}
	}
	if max(len(dims), s.Rank()-c+len(free)) > tensor.MaxRank {
		return x
	}
	y := w.like(tensor.Make(tensor.Float32, dims...))
	if k == program.DotExact {
		op := program.Operator{Kind: k, In: []int32{int32(x), int32(y)}, Ints: []int64{int64(c), int64(batch)}}
		for _, axis := range slices.Concat(lhsContract, lhsBatch, place[:c], place[c:c+batch]) {
			op.Ints = append(op.Ints, int64(axis))
		}
		op.Ints = append(op.Ints, []int64{8, 15}[r.IntN(2)], []int64{32, 64}[r.IntN(2)])
		return w.keep(b.Append(op))
	}
	return w.keep(b.Dot(x, lhsContract, lhsBatch, y, place[:c], place[c:c+batch]))
}

// Kinds are all kinds of operators but Input and Constant.
func Kinds() []program.Kind {
	var list []program.Kind
	for k := range program.Kind(255) {
		if !strings.HasPrefix(k.String(), "Kind(") && k != program.Input && k != program.Constant {
			list = append(list, k)
		}
	}
	return list
}

// Element types: numbers, comparable types, and half-precision types.
func number(d tensor.DType) bool    { return countable(d) && d != tensor.Bool }
func countable(d tensor.DType) bool { return !half(d) }
func half(d tensor.DType) bool      { return d == tensor.Float16 || d == tensor.BFloat16 }

// Random returns a program of about n operators with all late values as outputs, and its inputs. One of three seeds has
// a program of version 2 of the numerics.
func Random(t testing.TB, seed uint64, n int) (*program.Program, map[string]*tensor.Tensor) {
	w := &writer{t: t, r: rand.New(rand.NewPCG(seed, 1)), b: program.NewBuilder()}
	list := Kinds()
	for range n {
		w.step(list[w.r.IntN(len(list))])
	}
	for v := range program.Value(w.n) {
		if w.r.IntN(4) == 0 || int(v) == w.n-1 {
			w.b.Output(string(rune('A'+v%26))+string(rune('A'+v/26)), v)
		}
	}
	p, err := w.b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	if seed%3 == 1 {
		p = p.In(kernel.Version2)
	}
	in := map[string]*tensor.Tensor{}
	for _, i := range p.Inputs() {
		in[i.Name] = Tensor(w.r, i.Shape, true)
	}
	return p, in
}
