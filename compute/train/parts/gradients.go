package parts

import (
	"errors"
	"slices"

	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/program"
)

// ErrGradients is returned for a program whose gradients are not where a training step has them.
var ErrGradients = errors.New("not the program of a training step")

// Gradients is the part of a training step that ends in "loss" and in the gradient of each parameter, "g/<name>",
// before they are clipped: those whose norm is "grad_norm". It reads the batch and the parameters.
func Gradients(step *program.Program) (*program.Program, error) {
	names, shapes := Params(step), step.InputShapes()
	part := &program.Program{Numerics: step.Numerics, Ops: step.Ops}
	var grads []int32
	for _, o := range step.Outputs {
		switch o.Name {
		case "grad_norm":
			if op := step.Ops[o.Value]; op.Kind == program.Sqrt {
				grads = squared(step, op.In[0], nil)
			}
		case "loss":
			part.Outputs = append(part.Outputs, o)
		}
	}
	if len(names) == 0 || len(grads) != len(names) || len(part.Outputs) != 1 {
		return nil, ErrGradients
	}
	only := []string{"loss"}
	for i, n := range names {
		if !slices.Equal(step.Ops[grads[i]].Out.Dims, shapes[Param+n].Dims) {
			return nil, ErrGradients
		}
		part.Outputs = append(part.Outputs, program.Output{Name: optimizer.Gradient + n, Value: grads[i]})
		only = append(only, optimizer.Gradient+n)
	}
	return part.Only(only...), nil
}

// squared are the values whose sums of squares a value adds up, the first ones first.
func squared(p *program.Program, v int32, list []int32) []int32 {
	switch op := p.Ops[v]; op.Kind {
	case program.SumSquares:
		return append(list, op.In[0])
	case program.Add:
		return squared(p, op.In[1], squared(p, op.In[0], list))
	}
	return nil
}
