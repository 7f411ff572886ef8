package optimizer

import (
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Storage is the form in which an optimizer's state lies between two steps; "" is Whole. A step computes in float32.
type Storage string

const (
	Whole Storage = "fp32"
	Half  Storage = "bf16" // rounded to the nearest, ties to even
	// Blocks has the first and the second moment of a matrix as codes of 8 bits, with a scale for each block of BlockSize
	// elements that follow each other in row-major order. A tensor of one dimension, one whose number of elements
	// BlockSize does not divide, and moments of rows and columns stay float32.
	Blocks Storage = "int8"
)

// BlockSize is the number of elements that share a scale.
const BlockSize = 64

// ScaleSuffix ends the name of the scales of a moment in blocks.
const ScaleSuffix = ".scale"

// largestCode is that of the element of a block with the largest root.
const largestCode = 127

// A part is a tensor that a moment is kept in.
type part struct {
	suffix string
	shape  tensor.Shape
}

// parts are the tensors that a moment of the given shape is kept in.
func (s Storage) parts(prefix string, shape tensor.Shape) []part {
	switch {
	case s == Half:
		shape.DType = tensor.BFloat16
	case s.blocked(prefix, shape):
		codes := shape
		codes.DType = tensor.Int8
		return []part{{"", codes}, {ScaleSuffix, tensor.Make(tensor.Float32, shape.Elements()/BlockSize)}}
	}
	return []part{{"", shape}}
}

// blocked reports whether a moment of the given shape is kept in blocks.
func (s Storage) blocked(prefix string, shape tensor.Shape) bool {
	return s == Blocks && (prefix == First || prefix == Second) && shape.Rank() > 1 && shape.Elements()%BlockSize == 0
}

// restored is a moment in float32, of its parts.
func (s *Step) restored(by Storage, prefix string, shape tensor.Shape, parts []program.Value) program.Value {
	switch {
	case by == Half:
		return s.keep(s.b.Convert(parts[0], tensor.Float32))
	case !by.blocked(prefix, shape):
		return parts[0]
	}
	n := shape.Elements() / BlockSize
	codes := s.keep(s.b.Reshape(parts[0], n, BlockSize))
	x := s.apply(program.Dequantize, codes, s.spread(parts[1], n))
	if prefix == Second {
		x = s.apply(program.Mul, x, x)
		x = s.apply(program.Mul, x, x)
	} else {
		x = s.apply(program.Mul, x, s.apply(program.Abs, x))
	}
	return s.keep(s.b.Reshape(x, shape.Dims...))
}

// stored is the parts of a moment in float32. In blocks the codes stand for roots, so that elements far below the
// largest of a block keep some digits: the square root of a first moment with its sign, and the fourth root of a second
// moment. With x the roots of a block,
//
//	scale = max |x| / 127
//	code = the integer nearest to x * (1/scale), as kernel.Quantize says
//
// where the roots of a second moment are at least the scale, so that a divisor of a step never becomes zero.
func (s *Step) stored(by Storage, prefix string, v program.Value) []program.Value {
	shape := s.b.Shape(v)
	switch {
	case by == Half:
		return []program.Value{s.keep(s.b.Convert(v, tensor.BFloat16))}
	case !by.blocked(prefix, shape):
		return []program.Value{v}
	}
	n := shape.Elements() / BlockSize
	x := s.keep(s.b.Reshape(v, n, BlockSize))
	root := s.apply(program.Sqrt, s.apply(program.Abs, x))
	if prefix == Second {
		root = s.apply(program.Sqrt, root)
	}
	largest := s.keep(s.b.Reduce(program.ReduceMax, root, 1))
	scale := s.apply(program.Div, largest, s.like(s.scalar(largestCode), largest))
	each := s.spread(scale, n)
	if prefix == Second {
		root = s.apply(program.Max, root, each)
	} else {
		root = s.apply(program.Mul, root, s.apply(program.Sign, x))
	}
	codes := s.apply(program.Quantize, root, each)
	return []program.Value{s.keep(s.b.Reshape(codes, shape.Dims...)), scale}
}

// spread repeats the scales of n blocks for the elements of each.
func (s *Step) spread(scale program.Value, n int) program.Value {
	return s.keep(s.b.Broadcast(scale, []int{n, BlockSize}, []int{0}))
}
