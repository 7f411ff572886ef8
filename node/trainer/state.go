package trainer

import (
	"github.com/starling-network/starling/compute/model/architecture"
	"github.com/starling-network/starling/compute/tensor"
)

// State is a model between two steps, for steps that are computed elsewhere. Its tensors are not to be changed.
type State struct {
	Config        architecture.Config // with its adapters
	Base          map[string]*tensor.Tensor
	Trained       map[string]*tensor.Tensor
	First, Second map[string]*tensor.Tensor // moments, by the names of Trained; nil: zeros
	Steps         uint32
	Numerics      uint32 // version in which the steps are computed; 0: that of the trainer
}

// StateOf returns that of a model, or an error for clients.
func StateOf(t *Trainer, name string) (State, error) {
	m, err := t.model(name)
	if err != nil {
		return State{}, err
	}
	return State{m.config, t.tensors, m.params, m.first, m.second, m.steps, m.numerics}, nil
}

// Follow has a trainer compute in a version of the numerics, that of a network, what no run trains in another one. It
// reports whether the version was another one.
func Follow(t *Trainer, numerics uint32) bool {
	before := t.programs.numerics
	t.programs.numerics = numerics
	return before != numerics
}

// Adopt gives a model the weights, the moments, the steps and the numerics of a state.
func Adopt(t *Trainer, name string, s State) error {
	m, err := t.model(name)
	if err != nil {
		return err
	}
	m.params, m.first, m.second, m.steps, m.numerics = s.Trained, s.First, s.Second, s.Steps, s.Numerics
	return nil
}
