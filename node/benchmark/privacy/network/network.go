// Package network is a network for digits, with its training step and the private steps of an owner. It attacks nothing
// and measures nothing: packages inversion and learner do.
package network

import (
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/model/vision"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/descent"
	"github.com/starling-network/starling/exchange/dpsgd"
	"github.com/starling-network/starling/exchange/prg"
	"github.com/starling-network/starling/node/benchmark/privacy/digits"
)

// Network is a classifier of digits with its weights. Names and Weights have one order, which is that of the state of
// Step.
type Network struct {
	Vision  vision.Network
	Step    *program.Program // on a number of examples, by plain gradient descent
	Names   []string
	Weights []*tensor.Tensor
}

// New is a network of an architecture, with weights that a seed draws and a step on a number of examples.
func New(kind string, config map[string]any, seed uint64, examples int) (*Network, error) {
	v, err := vision.Parse(kind, config, digits.Size, digits.Labels())
	if err != nil {
		return nil, err
	}
	task, err := model.Classify(v, model.Batch{Sequences: examples})
	if err != nil {
		return nil, err
	}
	n := &Network{Vision: v}
	first := architecture.Init(v.Tensors(), seed)
	for _, t := range v.Tensors() {
		n.Names, n.Weights = append(n.Names, t.Name), append(n.Weights, first[t.Name])
	}
	n.Step, err = task.TrainStep(optimizer.SGD{})
	return n, err
}

// Private returns the weights after a number of private steps of an owner (package dpsgd) at a learning rate, with a
// Step on one example. The seed is that of the owner's draws.
func (n *Network) Private(t dpsgd.Terms, examples dpsgd.Examples, rate float32, steps int,
	seed prg.Key) ([]*tensor.Tensor, error) {
	d, err := descent.New(n.Step, optimizer.SGD{}, nil, nil, 1)
	if err != nil {
		return nil, err
	}
	x, err := dpsgd.New(d, t, examples, seed)
	if err != nil {
		return nil, err
	}
	if err := x.Begin(n.Weights); err != nil {
		return nil, err
	}
	for range steps {
		if _, err := x.Step(nil, nil, rate, 1, 1); err != nil {
			return nil, err
		}
	}
	var end []*tensor.Tensor
	for _, w := range n.Weights {
		end = append(end, tensor.New(w.Shape))
	}
	return end, x.State(end)
}
