// Package blocks is frozen weights in few bits: codes of 8 bits, and a scale for each block of neighbours in a row. It
// makes them of float32 weights and turns them back, with the bits that a program does (Dettmers et al. 2022 and 2023
// do so with blocks of other sizes). It knows no models and no files.
package blocks

import (
	"fmt"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/compute/tensor"
)

// Suffix is that of the name of the scales of a weight.
const Suffix = ".scale"

// most is the number of elements of a block, in rows that it divides.
const most = 64

// Size is the number of neighbours in a row of so many elements that share a scale: the largest power of two that
// divides the row, at most 64.
func Size(columns int) int {
	n := 1
	for n < most && columns%(2*n) == 0 {
		n *= 2
	}
	return n
}

// Shapes are those of the codes and the scales of a matrix.
func Shapes(rows, columns int) (codes, scales tensor.Shape) {
	return tensor.Make(tensor.Int8, rows, columns), tensor.Make(tensor.Float32, rows, columns/Size(columns))
}

// Quantise returns the codes and the scales of a matrix of float32: the scale of a block is its largest magnitude
// divided by 127, rounded, and the codes are those of kernel.Quantize.
func Quantise(x *tensor.Tensor) (codes, scales *tensor.Tensor, err error) {
	if x.Shape.Rank() != 2 || x.Shape.DType != tensor.Float32 {
		return nil, nil, fmt.Errorf("blocks: %s is no matrix of float32", x.Shape)
	}
	a, b := Shapes(x.Shape.Dims[0], x.Shape.Dims[1])
	codes, scales = tensor.New(a), tensor.New(b)
	size, to := Size(x.Shape.Dims[1]), tensor.As[int8](codes.Bytes())
	for i := range scales.F32() {
		block := x.F32()[i*size : (i+1)*size]
		var largest float32
		for _, v := range block {
			largest = max(largest, max(v, -v))
		}
		scale := largest / 127
		scales.F32()[i] = scale
		for k, v := range block {
			to[i*size+k] = kernel.Quantize(v, scale)
		}
	}
	scales.Canonicalize()
	return codes, scales, nil
}

// Restore returns the matrix that codes and scales stand for.
func Restore(codes, scales *tensor.Tensor) *tensor.Tensor {
	x := tensor.New(tensor.Make(tensor.Float32, codes.Shape.Dims...))
	size, from := Size(codes.Shape.Dims[1]), tensor.As[int8](codes.Bytes())
	for i := range x.F32() {
		x.F32()[i] = kernel.Dequantize(from[i], scales.F32()[i/size])
	}
	return x
}

// Compress returns tensors of the given names, in order: those of which there are codes among the names, as these
// follow from float32 weights.
func Compress(names []string, weights map[string]*tensor.Tensor) ([]*tensor.Tensor, error) {
	scaled := map[string]bool{}
	for _, n := range names {
		scaled[n] = true
	}
	var list []*tensor.Tensor
	made := map[string]*tensor.Tensor{}
	for _, n := range names {
		if x := made[n]; x != nil { // the scales of the one before
			list = append(list, x)
			continue
		}
		x := weights[n]
		if x == nil {
			return nil, fmt.Errorf("blocks: there is no weight %q", n)
		}
		if scaled[n+Suffix] {
			codes, scales, err := Quantise(x)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", n, err)
			}
			x, made[n+Suffix] = codes, scales
		}
		list = append(list, x)
	}
	return list, nil
}

// Expand returns the weights that tensors by name stand for.
func Expand(tensors map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	out := map[string]*tensor.Tensor{}
	for n, x := range tensors {
		if x.Shape.DType == tensor.Int8 {
			x = Restore(x, tensors[n+Suffix])
		}
		out[n] = x
	}
	for n, x := range tensors {
		if x.Shape.DType == tensor.Int8 {
			delete(out, n+Suffix)
		}
	}
	return out
}
