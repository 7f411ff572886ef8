package boundary

import (
	"math"
	"math/bits"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// coder adds operators. The first error sticks.
type coder struct {
	b   *program.Builder
	err error
}

func (c *coder) keep(v program.Value, err error) program.Value {
	if c.err == nil {
		c.err = err
	}
	return v
}

func (c *coder) apply(k program.Kind, operands ...program.Value) program.Value {
	return c.keep(c.b.Apply(k, operands...))
}

func (c *coder) convert(x program.Value, d tensor.DType) program.Value {
	return c.keep(c.b.Convert(x, d))
}

func (c *coder) reshape(x program.Value, dims ...int) program.Value {
	return c.keep(c.b.Reshape(x, dims...))
}

// along repeats x [n] along the other of two dimensions: axis is the one that it becomes.
func (c *coder) along(x program.Value, axis int, dims ...int) program.Value {
	return c.keep(c.b.Broadcast(x, dims, []int{axis}))
}

// filled is a tensor of one number.
func (c *coder) filled(t *tensor.Tensor, dims ...int) program.Value {
	return c.keep(c.b.Broadcast(c.b.Constant(t), dims, nil))
}

func (c *coder) ints(x int32, dims ...int) program.Value {
	return c.filled(tensor.FromI32([]int32{x}), dims...)
}

// times is the product of x [n, m] with a matrix over its last dimension and a dimension of the matrix.
func (c *coder) times(x, matrix program.Value, axis int) program.Value {
	return c.keep(c.b.Dot(x, []int{1}, nil, matrix, []int{axis}, nil))
}

// hadamard is the orthonormal symmetric matrix of Sylvester, of n rows, a power of 4: its elements are exact.
func hadamard(n int) *tensor.Tensor {
	t := tensor.New(tensor.Make(tensor.Float32, n, n))
	size := float32(1 / math.Sqrt(float64(n)))
	for i := range n {
		for j := range n {
			t.F32()[i*n+j] = size
			if bits.OnesCount(uint(i&j))%2 == 1 {
				t.F32()[i*n+j] = -size
			}
		}
	}
	return t
}

// The codes of four bits are -7 to 7, stored as 1 to 15, two in a byte: the first half of a block in the high bits.
const (
	largestCode = 7
	middle      = 8
	radix       = 16
	least       = 1e-30 // of a scale, so that a block of zeros divides
)

// encode makes codes uint8 [blocks, each/2] and scales bfloat16 [blocks] of x, in blocks of a number of elements.
func (c *coder) encode(x program.Value, each int) (codes, scales program.Value) {
	n := c.b.Shape(x).Elements() / each
	y := c.times(c.reshape(x, n, each), c.b.Constant(hadamard(each)), 0)
	largest := c.keep(c.b.Reduce(program.ReduceMax, c.apply(program.Abs, y), 1))
	scale := c.apply(program.Div, largest, c.filled(tensor.Scalar(largestCode), n))
	scale = c.apply(program.Max, scale, c.filled(tensor.Scalar(least), n))
	scales = c.convert(scale, tensor.BFloat16)
	code := c.apply(program.Quantize, y, c.along(c.convert(scales, tensor.Float32), 0, n, each))
	high := c.apply(program.Add, c.convert(code, tensor.Int32), c.ints(middle, n, each))
	half := func(from int) program.Value {
		return c.keep(c.b.Slice(high, []int{0, from}, []int{n, from + each/2}, []int{1, 1}))
	}
	pair := c.apply(program.Add, c.apply(program.Mul, half(0), c.ints(radix, n, each/2)), half(each/2))
	return c.convert(pair, tensor.Uint8), scales
}

// decode is float32 of the given dimensions, of codes and scales.
func (c *coder) decode(codes, scales program.Value, dims []int) program.Value {
	shape := c.b.Shape(codes).Dims
	n, each := shape[0], 2*shape[1]
	pair := c.convert(codes, tensor.Int32)
	high := c.apply(program.Div, pair, c.ints(radix, n, each/2))
	low := c.apply(program.Sub, pair, c.apply(program.Mul, high, c.ints(radix, n, each/2)))
	code := c.apply(program.Sub, c.keep(c.b.Concat(1, high, low)), c.ints(middle, n, each))
	y := c.apply(program.Dequantize, c.convert(code, tensor.Int8), c.along(c.convert(scales, tensor.Float32), 0, n, each))
	return c.reshape(c.times(y, c.b.Constant(hadamard(each)), 0), dims...)
}

// columns are those of a boundary, as float32 [chosen, width] with one 1 in each row: in the stage that chose them, and
// in the stage that was sent which they are.
type columns struct{ chosen, received program.Value }

// before is bool [n, n]: the first index is below the second.
func (c *coder) before(n int) program.Value {
	index := func(axis int) program.Value { return c.keep(c.b.Iota(tensor.Make(tensor.Int32, n, n), axis)) }
	return c.apply(program.Less, index(0), index(1))
}

// choose is int32 [width], 1 for the columns of x [rows, width] of which fewer than k have a larger sum of squares; of
// equals the first ones.
func (c *coder) choose(x program.Value, k int) program.Value {
	n := c.b.Shape(x).Dims[1]
	sums := c.keep(c.b.Reduce(program.ReduceSum, c.apply(program.Mul, x, x), 0))
	first, second := c.along(sums, 0, n, n), c.along(sums, 1, n, n)
	earlier := c.apply(program.And, c.apply(program.Equal, first, second), c.before(n))
	larger := c.apply(program.Or, c.apply(program.Greater, first, second), earlier)
	rank := c.keep(c.b.Reduce(program.ReduceSum, c.convert(larger, tensor.Int32), 0))
	return c.convert(c.apply(program.Less, rank, c.ints(int32(k), n)), tensor.Int32)
}

// selection is float32 [k, width]: row r has a 1 at the column of a mask before which r columns are chosen.
func (c *coder) selection(mask program.Value, k int) program.Value {
	n := c.b.Shape(mask).Elements()
	counted := c.apply(program.Where, c.before(n), c.along(mask, 0, n, n), c.ints(0, n, n))
	place := c.along(c.keep(c.b.Reduce(program.ReduceSum, counted, 0)), 1, k, n)
	row := c.keep(c.b.Iota(tensor.Make(tensor.Int32, k, n), 0))
	chosen := c.apply(program.Equal, c.along(mask, 1, k, n), c.ints(1, k, n))
	return c.convert(c.apply(program.And, chosen, c.apply(program.Equal, place, row)), tensor.Float32)
}

// weights of the bits of a byte, for each of n bytes: int32 [n, 8].
func (c *coder) weights(n int) program.Value {
	w := make([]int32, 8)
	for i := range w {
		w[i] = 1 << i
	}
	return c.along(c.b.Constant(tensor.FromI32(w, 8)), 1, n, 8)
}

// pack is the bits of a mask, uint8 [width/8], the lowest bit first.
func (c *coder) pack(mask program.Value) program.Value {
	n := c.b.Shape(mask).Elements() / 8
	sum := c.apply(program.Mul, c.reshape(mask, n, 8), c.weights(n))
	return c.convert(c.keep(c.b.Reduce(program.ReduceSum, sum, 1)), tensor.Uint8)
}

// unpack is the mask int32 [width] of bits.
func (c *coder) unpack(packed program.Value) program.Value {
	n := c.b.Shape(packed).Elements()
	high := c.apply(program.Div, c.along(c.convert(packed, tensor.Int32), 0, n, 8), c.weights(n))
	two := c.ints(2, n, 8)
	even := c.apply(program.Mul, c.apply(program.Div, high, two), two)
	return c.reshape(c.apply(program.Sub, high, even), 8*n)
}

// gather is the chosen columns of x, bfloat16 [rows, k].
func (c *coder) gather(x, selection program.Value) program.Value {
	return c.convert(c.times(x, selection, 1), tensor.BFloat16)
}

// spread is float32 [rows, width] with the chosen columns, and zeros.
func (c *coder) spread(kept, selection program.Value) program.Value {
	return c.times(c.convert(kept, tensor.Float32), selection, 0)
}
