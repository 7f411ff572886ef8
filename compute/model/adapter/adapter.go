// Package adapter computes with the tensors of low-rank adapters: it merges them into the weights of a model, and
// widens those of several models to one rank.
//
// Which layers have adapters, and their names and shapes, is compute/model/architecture.
package adapter

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/compute/kernel/matmul"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// Cover returns the model with adapters for every layer that one of the given models has them for, of the largest of
// their ranks, so that the adapters of each fit by Widen. The models are c with adapters; with none of them it is c.
func Cover(c architecture.Config, adapted []architecture.Config) (architecture.Config, error) {
	var l architecture.LoRA
	for _, a := range adapted {
		for _, n := range a.Adapted() {
			l.Targets = append(l.Targets, architecture.Module(n))
		}
		if own, ok := a.LoRA(); ok {
			l.Rank = max(l.Rank, own.Rank)
		}
	}
	if l.Rank == 0 {
		return c, nil
	}
	l.Alpha = float64(l.Rank)
	slices.Sort(l.Targets)
	l.Targets = slices.Compact(l.Targets)
	return c.Adapt(l)
}

// Widen returns the adapters of the model narrow as adapters of c that add the same when they are scaled by
// narrow.Scale: ranks are filled up with zeros, and layers without an adapter get zeros. c is what Cover makes of
// narrow and others. The error wraps ErrAdapter.
func Widen(c, narrow architecture.Config, adapters map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	if err := check(narrow.Adapters(), adapters); err != nil {
		return nil, err
	}
	wide := make(map[string]*tensor.Tensor)
	for _, n := range c.Adapters() {
		t := tensor.New(n.Shape)
		wide[n.Name] = t
		if from := adapters[n.Name]; from != nil { // A is longer by rows of zeros, B wider by columns
			row := from.Shape.Dims[1]
			for i := range from.Shape.Dims[0] {
				copy(t.F32()[i*n.Shape.Dims[1]:], from.F32()[i*row:(i+1)*row])
			}
		}
	}
	return wide, nil
}

// check makes sure that the tensors of the list are there.
func check(list []architecture.Named, tensors map[string]*tensor.Tensor) error {
	for _, n := range list {
		if t := tensors[n.Name]; t == nil || !t.Shape.Equal(n.Shape) {
			return fmt.Errorf("%w: tensor %s is missing or not %s", architecture.ErrAdapter, n.Name, n.Shape)
		}
	}
	return nil
}

// Merge returns the tensor of a model without adapters that gives the same as c, but for rounding: base, or, if it is
// adapted, W + (Alpha/Rank) B A: a product as matmul.Gemm specifies, the product with Alpha/Rank, and the sum, rounded.
func Merge(c architecture.Config, name string, base *tensor.Tensor,
	adapters map[string]*tensor.Tensor) (*tensor.Tensor, error) {
	for _, n := range c.Adapted() {
		if n.Name == name {
			err := errors.Join(check(c.Adapters(), adapters),
				check([]architecture.Named{n}, map[string]*tensor.Tensor{name: base}))
			if err != nil {
				return nil, err
			}
			of := architecture.AdapterPrefix + architecture.Module(n)
			return merge(c, n, base, adapters[of+architecture.DownSuffix].F32(), adapters[of+architecture.UpSuffix].F32()), nil
		}
	}
	return base, nil
}

// merge is base, the weight n, with the difference of its adapter A, a, and B, b.
func merge(c architecture.Config, n architecture.Named, base *tensor.Tensor, a, b []float32) *tensor.Tensor {
	in, out := architecture.InOut(c, n)
	l, _ := c.LoRA()
	rank := l.Rank
	difference := make([]float32, in*out)
	g := matmul.Gemm{M: out, N: in, K: rank, A: b, ARow: rank, ACol: 1, B: a, BRow: in, BCol: 1, C: difference, CRow: in}
	if architecture.IsConv1D(c, n) { // the transpose, from the transposes
		g = matmul.Gemm{M: in, N: out, K: rank, A: a, ARow: 1, ACol: in, B: b, BRow: 1, BCol: rank, C: difference, CRow: out}
	}
	g.Run(1)
	sum, scale := base.Clone(), float32(c.Scale())
	for i, d := range difference {
		sum.F32()[i] += float32(d * scale)
	}
	return sum
}
