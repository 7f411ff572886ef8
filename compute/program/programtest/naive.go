package programtest

import (
	"math"
	"slices"
	"testing"

	"github.com/starling-network/starling/compute/grade/gradetest"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/kernel/elementary"
	"github.com/starling-network/starling/compute/kernel/exact"
	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/philox"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/program/programtest/activation"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/view"
)

// naive computes an operator as its Kind says, element by element and without regard to speed: the oracle of the tests.
// Elements are held as float32 or int64 by the type of the tensor.
type naive struct {
	shape tensor.Shape
	f     []float32
	i     []int64
}

func naiveOf(s tensor.Shape) naive {
	return naive{shape: s, f: make([]float32, s.Elements()), i: make([]int64, s.Elements())}
}

func naiveFrom(t *tensor.Tensor) naive {
	n := naiveOf(t.Shape)
	for k := range n.f {
		switch t.Shape.DType {
		case tensor.Float32:
			n.f[k] = t.F32()[k]
		case tensor.Int32:
			n.i[k] = int64(t.I32()[k])
		case tensor.Int64:
			n.i[k] = t.I64()[k]
		case tensor.Uint32:
			n.i[k] = int64(tensor.As[uint32](t.Bytes())[k])
		case tensor.Int8:
			n.i[k] = int64(int8(t.Bytes()[k]))
		case tensor.Float16, tensor.BFloat16:
			n.i[k] = int64(tensor.As[uint16](t.Bytes())[k]) // the bits
		default:
			n.i[k] = int64(t.Bytes()[k])
		}
	}
	return n
}

// tensor returns the canonical tensor; integers wrap around to their type.
func (n naive) tensor() *tensor.Tensor {
	t := tensor.New(n.shape)
	for k := range n.f {
		switch n.shape.DType {
		case tensor.Float32:
			t.F32()[k] = n.f[k]
		case tensor.Int32:
			t.I32()[k] = int32(n.i[k])
		case tensor.Int64:
			t.I64()[k] = n.i[k]
		case tensor.Uint32:
			tensor.As[uint32](t.Bytes())[k] = uint32(n.i[k])
		case tensor.Float16, tensor.BFloat16:
			tensor.As[uint16](t.Bytes())[k] = uint16(n.i[k])
		default:
			t.Bytes()[k] = uint8(n.i[k])
		}
	}
	t.Canonicalize()
	return t
}

func (n naive) float() bool { return n.shape.DType == tensor.Float32 }

// set copies element j of x to element k.
func (n naive) set(k int, x naive, j int) { n.f[k], n.i[k] = x.f[j], x.i[j] }

// coordinates of element k of a tensor.
func coordinates(dims []int, k int) []int {
	c := make([]int, len(dims))
	for d := len(dims) - 1; d >= 0; d-- {
		c[d] = k % dims[d]
		k /= dims[d]
	}
	return c
}

func offset(dims, c []int) int {
	k := 0
	for d := range dims {
		k = k*dims[d] + c[d]
	}
	return k
}

// Eval computes an operator from the values of its operands, as its Kind says.
func Eval(t testing.TB, numerics uint32, op *program.Operator, in []*tensor.Tensor) *tensor.Tensor {
	operands := make([]naive, len(in))
	for i, x := range in {
		operands[i] = naiveFrom(x)
	}
	return evalNaive(t, numerics, op, operands).tensor()
}

func evalNaive(t testing.TB, numerics uint32, op *program.Operator, in []naive) naive {
	if op.Kind >= program.CausalAttention && op.Kind <= program.CausalAttentionGradV {
		return evalAttention(numerics, op, in)
	}
	if op.Kind == program.CrossEntropy || op.Kind == program.CrossEntropyGrad {
		return evalCrossEntropy(numerics, op, in)
	}
	out := naiveOf(op.Out)
	dims := op.Out.Dims
	for k := range out.f {
		c := coordinates(dims, k)
		switch op.Kind {
		case program.Constant:
			data, err := tensor.FromBytes(op.Out, op.Data)
			if err != nil {
				t.Fatal(err)
			}
			return naiveFrom(data)
		case program.Iota:
			out.f[k], out.i[k] = float32(c[op.Ints[0]]), int64(c[op.Ints[0]])
		case program.Identity, program.Reshape:
			out.set(k, in[0], k)
		case program.Transpose:
			src := make([]int, len(dims))
			for d, a := range op.Ints {
				src[a] = c[d]
			}
			out.set(k, in[0], offset(in[0].shape.Dims, src))
		case program.Broadcast:
			src := make([]int, len(op.Ints))
			for d, a := range op.Ints {
				src[d] = c[a] % in[0].shape.Dims[d]
			}
			out.set(k, in[0], offset(in[0].shape.Dims, src))
		case program.Slice:
			for d := range c {
				c[d] = int(op.Ints[d]) + c[d]*int(op.Ints[2*len(dims)+d])
			}
			out.set(k, in[0], offset(in[0].shape.Dims, c))
		case program.Reverse:
			for _, a := range op.Ints {
				c[a] = dims[a] - 1 - c[a]
			}
			out.set(k, in[0], offset(dims, c))
		case program.Pad:
			out.set(k, in[1], 0)
			inside := true
			for d, n := range in[0].shape.Dims {
				step := int(op.Ints[2*len(dims)+d]) + 1
				c[d] -= int(op.Ints[d])
				inside = inside && c[d] >= 0 && c[d]%step == 0 && c[d]/step < n
				c[d] /= step
			}
			if inside {
				out.set(k, in[0], offset(in[0].shape.Dims, c))
			}
		case program.Concat:
			a := op.Ints[0]
			x := 0
			for ; c[a] >= in[x].shape.Dims[a]; x++ {
				c[a] -= in[x].shape.Dims[a]
			}
			out.set(k, in[x], offset(in[x].shape.Dims, c))
		case program.Windows:
			rank := len(op.Ints) / 3
			src := make([]int, rank)
			for d := range src {
				src[d] = c[d]*int(op.Ints[rank+d]) + c[rank+d]*int(op.Ints[2*rank+d])
			}
			out.set(k, in[0], offset(in[0].shape.Dims, src))
		case program.SumWindows:
			out.f[k] = naiveSumWindows(op, in[0], c)
		case program.FirstMax:
			out.i[k] = naiveTruth(naiveFirstMax(op, in[0], k))
		case program.Random:
			block := philox.Block(uint64(in[0].i[0]), uint64(in[0].i[1]), uint64(in[0].i[2])+uint64(k/4))
			out.i[k] = int64(block[k%4])
		case program.Dot:
			out.f[k] = naiveDot(pairsOfDot(op, in[0], in[1], c))
		case program.DotExact:
			out.f[k] = naiveDotExact(program.FormOfDot(op.Ints), pairsOfDot(op, in[0], in[1], c))
		case program.ReduceSum, program.ReduceMax, program.ReduceMin:
			naiveReduce(op, in[0], out, k, c)
		case program.SumSquares:
			squares := make([]float32, len(in[0].f))
			for j, x := range in[0].f {
				squares[j] = x * x
			}
			out.f[k] = naiveSum(squares)
		case program.Grade:
			out.f[k] = gradetest.Reward(t, op.Data, in[0].i, in[1].i, in[0].shape.Dims[0], in[1].shape.Dims[0], k)
		case program.TakeRows, program.AddRows:
			naiveRows(op, in, out, k)
		default:
			naiveLane(t, numerics, op, in, out, k)
		}
	}
	return out
}

// naiveRows computes element k of rows that are looked up, or added to.
func naiveRows(op *program.Operator, in []naive, out naive, k int) {
	if op.Kind == program.TakeRows {
		width := len(out.f) / len(in[1].i)
		out.set(k, in[0], int(in[1].i[k/width])*width+k%width)
		return
	}
	out.f[k] = in[0].f[k]
	width := len(in[2].f) / len(in[1].i)
	for j, row := range in[1].i {
		if int(row) == k/width {
			out.f[k] += in[2].f[j*width+k%width]
		}
	}
}

// naiveSumWindows looks at all elements of all windows for those that come from coordinates c.
func naiveSumWindows(op *program.Operator, x naive, c []int) (sum float32) {
	rank := len(c)
	for j, u := range x.f {
		w := coordinates(x.shape.Dims, j)
		here := true
		for d := range c {
			here = here && w[d]*int(op.Ints[rank+d])+w[rank+d]*int(op.Ints[2*rank+d]) == c[d]
		}
		if here {
			sum += u
		}
	}
	return sum
}

// naiveFirstMax compares element k with all elements that differ from it along the axes of op only.
func naiveFirstMax(op *program.Operator, x naive, k int) bool {
	mine, me := coordinates(x.shape.Dims, k), x.f[k]
	for j, other := range x.f {
		same := true
		for d, v := range coordinates(x.shape.Dims, j) {
			same = same && (v == mine[d] || slices.Contains(op.Ints, int64(d)))
		}
		switch {
		case !same || j == k:
		case other != other:
			if me == me || j < k {
				return false
			}
		case other > me, other == me && j < k:
			return false
		}
	}
	return true
}

// pairsOfDot are the factors of the products that an element at c of a Dot or a DotExact adds up, in order.
func pairsOfDot(op *program.Operator, l, r naive, c []int) (pairs [][2]float32) {
	a, _ := program.AxesOfDot(op.Ints, l.shape.Rank(), r.shape.Rank())
	lc, rc := make([]int, l.shape.Rank()), make([]int, r.shape.Rank())
	for i := range a.LHSBatch {
		lc[a.LHSBatch[i]], rc[a.RHSBatch[i]] = c[i], c[i]
	}
	c = c[len(a.LHSBatch):]
	for i, x := range a.LHSFree {
		lc[x] = c[i]
	}
	for i, x := range a.RHSFree {
		rc[x] = c[len(a.LHSFree)+i]
	}
	sizes := view.Pick(l.shape.Dims, a.LHSContract)
	for k := range view.Elements(sizes) {
		kc := coordinates(sizes, k)
		for i := range kc {
			lc[a.LHSContract[i]], rc[a.RHSContract[i]] = kc[i], kc[i]
		}
		pairs = append(pairs, [2]float32{l.f[offset(l.shape.Dims, lc)], r.f[offset(r.shape.Dims, rc)]})
	}
	return pairs
}

// naiveDotExact follows the specification of exact.Form.
func naiveDotExact(f exact.Form, pairs [][2]float32) (sum float32) {
	for block := range slices.Chunk(pairs, f.Block) {
		var up [2]float64
		for side := range 2 {
			largest, top := 0.0, map[int]float64{8: 127, 15: 16319}[f.Bits]
			for _, p := range block {
				if x := math.Abs(float64(p[side])); !(x <= largest) {
					largest = x
				}
			}
			e := -63
			for largest > math.Ldexp(top, e) && e <= 38 {
				e++
			}
			if up[side] = math.Ldexp(1, e); e > 38 || largest != largest {
				up[side] = math.NaN()
			}
		}
		exactly := 0.0 // below 2^53
		for _, p := range block {
			exactly += math.RoundToEven(float64(p[0])/up[0]) * math.RoundToEven(float64(p[1])/up[1])
		}
		sum += float32(float64(float32(exactly)) * up[0] * up[1])
	}
	return sum
}

func naiveDot(pairs [][2]float32) float32 {
	var sum, chunk float32
	first := true
	for k, p := range pairs {
		if k > 0 && k%matmul.ChunkK == 0 {
			if sum += chunk; first {
				sum = chunk
			}
			chunk, first = 0, false
		}
		chunk = matmul.FMA32(p[0], p[1], chunk)
	}
	if first {
		return chunk
	}
	return sum + chunk
}

// naiveSum follows the definition level by level.
func naiveSum(list []float32) float32 {
	for {
		var sums []float32
		for piece := range slices.Chunk(list, kernel.ChunkSum) {
			var lane [16]float32
			for i, x := range piece {
				lane[i%16] += x
			}
			for _, w := range []int{8, 4, 2, 1} {
				for i := range w {
					lane[i] += lane[i+w]
				}
			}
			sums = append(sums, lane[0])
		}
		if len(sums) == 1 {
			return sums[0]
		}
		list = sums
	}
}

func naiveReduce(op *program.Operator, x, out naive, k int, c []int) {
	var fs []float32
	var is []int64
	for j := range x.f {
		var kept []int
		for d, v := range coordinates(x.shape.Dims, j) {
			if !slices.Contains(op.Ints, int64(d)) {
				kept = append(kept, v)
			}
		}
		if slices.Equal(kept, c) {
			fs, is = append(fs, x.f[j]), append(is, x.i[j])
		}
	}
	if op.Kind == program.ReduceSum {
		out.f[k] = naiveSum(fs)
		for _, v := range is {
			out.i[k] += v
		}
		return
	}
	out.f[k], out.i[k] = fs[0], is[0]
	for j := range fs[1:] {
		if op.Kind == program.ReduceMax {
			out.f[k], out.i[k] = naiveMax(out.f[k], fs[j+1]), max(out.i[k], is[j+1])
		} else {
			out.f[k], out.i[k] = -naiveMax(-out.f[k], -fs[j+1]), min(out.i[k], is[j+1])
		}
	}
}

func naiveMax(x, y float32) float32 {
	switch {
	case x != x || y != y:
		return float32(math.NaN())
	case x == 0 && y == 0:
		return math.Float32frombits(math.Float32bits(x) & math.Float32bits(y))
	case x > y:
		return x
	}
	return y
}

// naiveLane computes element k of an elementwise operator.
func naiveLane(t testing.TB, numerics uint32, op *program.Operator, in []naive, out naive, k int) {
	x, y := in[0], in[0]
	if len(in) > 1 {
		y = in[1]
	}
	if op.Kind == program.Where {
		if x.i[k] != 0 {
			out.set(k, in[1], k)
		} else {
			out.set(k, in[2], k)
		}
		return
	}
	switch op.Kind {
	case program.Convert:
		naiveConvert(x, out, k)
		return
	case program.Quantize:
		out.i[k] = naiveQuantize(x.f[k], y.f[k])
		return
	case program.Dequantize:
		out.f[k] = float32(x.i[k]) * y.f[k]
		return
	}
	if x.float() {
		a, b := x.f[k], float32(0)
		if op.Kind < program.AdamM {
			b = y.f[k]
		}
		if op.Kind >= program.Equal && op.Kind <= program.GreaterEqual {
			out.i[k] = naiveCompare(op.Kind, a, b)
			return
		}
		out.f[k] = naiveFloat(t, numerics, op, in, k, a, b)
		return
	}
	a, b := x.i[k], y.i[k]
	if op.Kind >= program.Equal && op.Kind <= program.GreaterEqual {
		out.i[k] = naiveCompare(op.Kind, a, b)
		return
	}
	out.i[k] = naiveInt(t, op.Kind, a, b)
}

func naiveCompare[T float32 | int64](k program.Kind, a, b T) int64 {
	return naiveTruth(map[program.Kind]bool{program.Equal: a == b, program.NotEqual: a != b, program.Less: a < b,
		program.LessEqual: a <= b, program.Greater: a > b, program.GreaterEqual: a >= b}[k])
}

func naiveTruth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func naiveFloat(t testing.TB, numerics uint32, op *program.Operator, in []naive, k int, a, b float32) float32 {
	one := elementary.Math{Version: numerics}.Scalars()
	switch op.Kind {
	case program.Neg:
		return -a
	case program.Abs:
		return float32(math.Abs(float64(a)))
	case program.Sign:
		if a > 0 {
			return 1
		} else if a < 0 {
			return -1
		}
		return a
	case program.Exp:
		return one.Exp(a)
	case program.Log:
		return one.Log(a)
	case program.Tanh:
		return one.Tanh(a)
	case program.Erf:
		return one.Erf(a)
	case program.Logistic:
		return one.Logistic(a)
	case program.Sqrt:
		return float32(math.Sqrt(float64(a)))
	case program.Rsqrt:
		return one.Rsqrt(a)
	case program.Gelu, program.GeluGrad, program.Silu, program.SiluGrad:
		return activation.Of(numerics, op.Kind, a, in[len(in)-1].f[k])
	case program.Sin:
		return one.Sin(a)
	case program.Cos:
		return one.Cos(a)
	case program.Floor:
		return float32(math.Floor(float64(a)))
	case program.Ceil:
		return float32(math.Ceil(float64(a)))
	case program.Round:
		return float32(math.RoundToEven(float64(a)))
	case program.Add:
		return a + b
	case program.Sub:
		return a - b
	case program.Mul:
		return a * b
	case program.Div:
		return a / b
	case program.Max:
		return naiveMax(a, b)
	case program.Min:
		return -naiveMax(-a, -b)
	case program.Pow:
		return one.Pow(a, b)
	}
	return naiveAdam(t, op, in, k)
}

func naiveAdam(t testing.TB, op *program.Operator, in []naive, k int) float32 {
	beta := math.Float32frombits(uint32(op.Ints[0]))
	switch op.Kind {
	case program.AdamM, program.AdamV:
		g := float32(in[1].f[k] * in[2].f[0])
		if op.Kind == program.AdamV {
			g = float32(g * g)
		}
		return float32(beta*in[0].f[k]) + float32((1-beta)*g)
	case program.AdamP:
		decay := math.Float32frombits(uint32(op.Ints[1]))
		root := float32(math.Sqrt(float64(float32(in[2].f[k] * in[5].f[0]))))
		ratio := float32(in[1].f[k]*in[4].f[0]) / float32(root+beta)
		sum := ratio + float32(decay*in[0].f[k])
		return in[0].f[k] - float32(in[3].f[0]*sum)
	}
	t.Fatalf("no oracle for %s", op.Kind)
	return 0
}

func naiveInt(t testing.TB, k program.Kind, a, b int64) int64 {
	switch k {
	case program.Neg:
		return -a
	case program.Abs:
		if a < 0 {
			return -a
		}
		return a
	case program.Sign:
		if a > 0 {
			return 1
		} else if a < 0 {
			return -1
		}
		return 0
	case program.Not:
		return 1 - a
	case program.And:
		return a & b
	case program.Or:
		return a | b
	case program.Add:
		return a + b
	case program.Sub:
		return a - b
	case program.Mul:
		return a * b
	case program.Div:
		if b == 0 {
			return 0
		}
		return a / b
	case program.Max:
		return max(a, b)
	case program.Min:
		return min(a, b)
	}
	t.Fatalf("no oracle for %s", k)
	return 0
}
