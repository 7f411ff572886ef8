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
}

// StateOf returns that of a model, or an error for clients.
func StateOf(t *Trainer, name string) (State, error) {
	m, err := t.model(name)
	if err != nil {
		return State{}, err
	}
	return State{m.config, t.tensors, m.params, m.first, m.second, m.steps}, nil
}

// Adopt gives a model the weights, the moments and the steps of a state.
func Adopt(t *Trainer, name string, s State) error {
	m, err := t.model(name)
	if err != nil {
		return err
	}
	m.params, m.first, m.second, m.steps = s.Trained, s.First, s.Second, s.Steps
	return nil
}
