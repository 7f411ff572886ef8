package factors

import (
	"testing"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/federated"
)

// Of owners whose factors take turns, the mean of the products is the product with the mean factor, in each round; of
// owners who train both factors it is not.
func TestMeanOfProducts(t *testing.T) {
	n, err := newNetwork(Size{Base: 5})
	if err != nil {
		t.Fatal(err)
	}
	names, of := train.Params(n.step), owners(3)
	off := func(n *network, in func(string) bool) (worst float64) {
		var mean, products []*tensor.Tensor // of factors, and of their products
		for o, own := range of {
			end, err := unit(n.step, in, n.frozen, n.first, own, uint64(o), 20, 0, 20)
			if err != nil {
				t.Fatal(err)
			}
			added, err := n.update(names, end, in, true)
			if err != nil {
				t.Fatal(err)
			}
			mean, products = sum(mean, end), sum(products, added)
		}
		for _, x := range mean {
			for k := range x.F32() {
				x.F32()[k] /= float32(len(of))
			}
		}
		one, err := n.update(names, mean, in, true)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range one {
			for k, v := range x.F32() {
				worst = max(worst, float64(v-products[i].F32()[k]/float32(len(of))))
			}
		}
		n.first = mean
		return worst
	}
	first := n.first
	for round := range uint32(4) {
		if d := off(n, func(name string) bool { return federated.Trains(name, round) }); d > 1e-6 {
			t.Errorf("round %d: the means are %v apart", round, d)
		}
	}
	n.first = first
	worst := 0.0
	for range 4 {
		worst = max(worst, off(n, func(string) bool { return true }))
	}
	if worst < 1e-4 {
		t.Errorf("of both factors the means are %v apart", worst)
	}
}

// sum adds tensors to others, in new ones; nil: to none.
func sum(to, more []*tensor.Tensor) (all []*tensor.Tensor) {
	for i, x := range more {
		t := x.Clone()
		for k := range t.F32() {
			if to != nil {
				t.F32()[k] += to[i].F32()[k]
			}
		}
		all = append(all, t)
	}
	return all
}
