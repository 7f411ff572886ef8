package optimizer

import (
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
)

// Alone returns the program of a step of an optimizer on given gradients. Inputs: the scalars "lr", "c1" and "c2" as
// model.Task.TrainStep has them, of each trained tensor "p/<name>", then of each "g/<name>", and what Append declares.
// Outputs: those of Append.
func Alone(o Optimizer, trained []Tensor) (*program.Program, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	b := program.NewBuilder()
	scalars, values := [3]program.Value{}, map[string][]program.Value{}
	for i, name := range []string{"lr", "c1", "c2"} {
		scalars[i] = b.Input(name, tensor.Make(tensor.Float32))
	}
	for _, prefix := range []string{Param, Gradient} {
		for _, t := range trained {
			values[prefix] = append(values[prefix], b.Input(prefix+t.Name, t.Shape))
		}
	}
	if err := Append(b, o, trained, values[Param], values[Gradient], scalars[0], scalars[1], scalars[2]); err != nil {
		return nil, err
	}
	p, err := b.Finish()
	if err != nil {
		return nil, err
	}
	return p.Simplify(), nil
}
