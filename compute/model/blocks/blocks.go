// Package blocks is frozen weights in few bits: codes of 8 or 4 bits, and a scale for each block of neighbours in a
// row. It makes them of float32 weights and turns them back, with the bits that a program does (Dettmers et al. 2022
// and 2023 do so with blocks of other sizes). It knows no models and no files.
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

// NormalFloat is the table of NF4: what codes of 4 bits stand for, times the scale (Dettmers et al. 2023, appendix E).
var NormalFloat = [16]float32{-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
	-0.18477343022823334, -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
	0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1}

// Size is the number of neighbours that share a scale in a row with the given number of columns: the largest power of
// two that divides the row, at most 64.
func Size(columns int) int {
	n := 1
	for n < most && columns%(2*n) == 0 {
		n *= 2
	}
	return n
}

// Shapes are those of the codes and the scales of a matrix. Codes of 4 bits are two to a byte; a row of an odd number
// of elements has codes of 8 bits.
func Shapes(rows, columns, bits int) (codes, scales tensor.Shape) {
	codes = tensor.Make(tensor.Int8, rows, columns)
	if bits == 4 && columns%2 == 0 {
		codes = tensor.Make(tensor.Uint8, rows, columns/2)
	}
	return codes, tensor.Make(tensor.Float32, rows, columns/Size(columns))
}

// Coded reports whether a tensor is codes.
func Coded(s tensor.Shape) bool { return s.DType == tensor.Int8 || s.DType == tensor.Uint8 }

// Quantise returns the codes and the scales of a matrix of float32. Of 8 bits the scale of a block is its largest
// magnitude divided by 127, rounded, and the codes are those of kernel.Quantize. Of 4 bits it is the largest magnitude,
// and a code is the index in NormalFloat of the value nearest to the quotient, rounded, of an element and the scale,
// the lower one of two; the first of two elements is in the high bits.
func Quantise(x *tensor.Tensor, bits int) (codes, scales *tensor.Tensor, err error) {
	if x.Shape.Rank() != 2 || x.Shape.DType != tensor.Float32 {
		return nil, nil, fmt.Errorf("blocks: %s is no matrix of float32", x.Shape)
	}
	a, b := Shapes(x.Shape.Dims[0], x.Shape.Dims[1], bits)
	codes, scales = tensor.New(a), tensor.New(b)
	size := Size(x.Shape.Dims[1])
	for i := range scales.F32() {
		block := x.F32()[i*size : (i+1)*size]
		var scale float32
		for _, v := range block {
			scale = max(scale, max(v, -v))
		}
		if a.DType == tensor.Int8 {
			scale /= 127
		}
		scales.F32()[i] = scale
		for k, v := range block {
			if at := i*size + k; a.DType == tensor.Int8 {
				tensor.As[int8](codes.Bytes())[at] = kernel.Quantize(v, scale)
			} else {
				codes.Bytes()[at/2] |= place(v/scale) << (4 - 4*(at%2))
			}
		}
	}
	scales.Canonicalize()
	return codes, scales, nil
}

// place is where in the table the nearest to x is; that of 0 for no number.
func place(x float32) byte {
	if x != x {
		return 7
	}
	best := 0
	for i, v := range NormalFloat {
		if float64(max(x-v, v-x)) < float64(max(x-NormalFloat[best], NormalFloat[best]-x)) {
			best = i
		}
	}
	return byte(best)
}

// Restore returns the matrix that codes and scales stand for.
func Restore(codes, scales *tensor.Tensor) *tensor.Tensor {
	rows, columns := codes.Shape.Dims[0], codes.Shape.Dims[1]
	if codes.Shape.DType == tensor.Uint8 {
		columns *= 2
	}
	x, size := tensor.New(tensor.Make(tensor.Float32, rows, columns)), Size(columns)
	for i := range x.F32() {
		scale := scales.F32()[i/size]
		if codes.Shape.DType == tensor.Int8 {
			x.F32()[i] = kernel.Dequantize(tensor.As[int8](codes.Bytes())[i], scale)
		} else {
			x.F32()[i] = NormalFloat[codes.Bytes()[i/2]>>(4-4*(i%2))&15] * scale
		}
	}
	return x
}

// Compress returns tensors of the given names, in order: those that are coded as their shapes say, as these follow from
// float32 weights.
func Compress(names []string, shapes []tensor.Shape, weights map[string]*tensor.Tensor) ([]*tensor.Tensor, error) {
	var list []*tensor.Tensor
	made := map[string]*tensor.Tensor{}
	for i, n := range names {
		if x := made[n]; x != nil { // the scales of the one before
			list = append(list, x)
			continue
		}
		x := weights[n]
		if x == nil {
			return nil, fmt.Errorf("blocks: there is no weight %q", n)
		}
		if Coded(shapes[i]) {
			bits := 8
			if shapes[i].DType == tensor.Uint8 {
				bits = 4
			}
			codes, scales, err := Quantise(x, bits)
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
		if Coded(x.Shape) {
			x = Restore(x, tensors[n+Suffix])
		}
		out[n] = x
	}
	for n, x := range tensors {
		if Coded(x.Shape) {
			delete(out, n+Suffix)
		}
	}
	return out
}
