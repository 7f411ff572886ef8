// Package scaffold corrects the steps of owners whose data differ (SCAFFOLD, Karimireddy et al. 2020, algorithm 1 with
// option II). A control variate is an estimate of a gradient: each owner keeps one of its own data, and the coordinator
// the sum of those. An owner adds the mean of all variates, less its own, to each of its gradients.
//
// The increment of a variate follows from the update of its owner and from the announcement of the coordinator. So the
// sum of the updates of a round gives the sum of the increments too, and nothing else is sent. The package keeps no
// state, and sends nothing.
package scaffold

import (
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// Rates is the sum of the learning rates of the steps of a round: an update divided by it is the mean gradient of the
// steps, if the optimizer is plain gradient descent.
func Rates(s *train.Spec, round uint32) (sum float64) {
	for k := range s.Steps {
		lr, _, _ := s.Scalars(round, 0, k)
		sum += float64(lr)
	}
	return sum
}

// Steer is what an owner adds to its gradients: the mean variate less its own.
func Steer(mean, own []*tensor.Tensor) (all []*tensor.Tensor) {
	for i, m := range mean {
		all = append(all, train.Difference(m, own[i]))
	}
	return all
}

// Next is the variate of an owner after a round: own - mean + update/rates. The update is the weights that the round
// began with less those that the owner ended with, in the form in which the sum has it.
func Next(own, mean, update []*tensor.Tensor, rates float64) (all []*tensor.Tensor) {
	for i, x := range own {
		t := tensor.New(x.Shape)
		c, m, u := x.F32(), mean[i].F32(), update[i].F32()
		for k := range t.F32() {
			t.F32()[k] = float32(float64(c[k]) - float64(m[k]) + float64(float64(u[k])/rates))
		}
		all = append(all, t)
	}
	return all
}

// Sum is the sum of the variates of all owners after a round: the sum before, and the increments of the owners in the
// round, whose mean update is given.
func Sum(before, mean, update []*tensor.Tensor, owners int, rates float64) (all []*tensor.Tensor) {
	for i, x := range before {
		t := tensor.New(x.Shape)
		s, m, u := x.F32(), mean[i].F32(), update[i].F32()
		for k := range t.F32() {
			one := float64(float64(u[k])/rates) - float64(m[k])
			t.F32()[k] = float32(float64(s[k]) + float64(float64(owners)*one))
		}
		all = append(all, t)
	}
	return all
}

// Mean is a sum of variates, divided by the number of owners that have one. If no owner has one, it is the sum, which
// is 0 then.
func Mean(sum []*tensor.Tensor, owners int) (all []*tensor.Tensor) {
	for _, x := range sum {
		t := tensor.New(x.Shape)
		for k, v := range x.F32() {
			t.F32()[k] = float32(float64(v) / float64(max(1, owners)))
		}
		all = append(all, t)
	}
	return all
}

// Zeros are variates that correct nothing, of the shapes of parameters.
func Zeros(of []*tensor.Tensor) (all []*tensor.Tensor) {
	for _, x := range of {
		all = append(all, tensor.New(x.Shape))
	}
	return all
}
