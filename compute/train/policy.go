package train

import (
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/swarm"
)

// Node is the number of the model in a checkpoint that a unit trains, or draws with: 0 but in a swarm.
func Node(s *Spec, unit uint32) int {
	if s.learning != nil {
		s = s.learning
	}
	return swarm.Node(s.Exchange.Policies, s.Apart(), unit)
}

// Model is the model of a checkpoint with a number: all of it but in a swarm, where the parameters are the first model,
// and the lists of Outer the others.
func Model(s *Spec, c *Checkpoint, number int) *Checkpoint {
	if s.Exchange.Policies == 0 || len(c.Outer) == 0 {
		return c
	}
	all := append([][]*tensor.Tensor{c.Params}, c.Outer...)
	return &Checkpoint{Round: c.Round, Names: c.Names, Params: all[number]}
}

// ModelOf is the model of a checkpoint that a unit begins with, or its stage of that. Of the result it is the same.
func ModelOf(s *Spec, c *Checkpoint, unit uint32) *Checkpoint {
	if s.Pipeline != nil && len(c.Names) == len(s.Pipeline.Stage) {
		return stageOf(s.Pipeline, c, unit)
	}
	return Model(s, c, Node(s, unit))
}
