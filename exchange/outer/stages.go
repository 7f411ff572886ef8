package outer

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// advanceStages is Consume for units that are stages of replicas: the updates of a stage, one of each replica, move the
// parameters of that stage. Each parameter has the bits that it has where units are whole replicas.
func advanceStages(s *train.Spec, base *train.Checkpoint, deltas [][]*tensor.Tensor,
	lay func(*tensor.Tensor) *tensor.Tensor) (*train.Checkpoint, error) {
	if len(deltas) != int(s.Units) || len(base.Params) != len(s.Pipeline.Stage) {
		return nil, fmt.Errorf("%w: %d updates of %d units, and %d parameters of %d", ErrRound, len(deltas), s.Units,
			len(base.Params), len(s.Pipeline.Stage))
	}
	n := s.Pipeline.Stages()
	next := &train.Checkpoint{Round: base.Round + 1, Names: base.Names, Params: make([]*tensor.Tensor, len(base.Params)),
		Outer: make([][]*tensor.Tensor, len(base.Outer))}
	for k := range next.Outer {
		next.Outer[k] = make([]*tensor.Tensor, len(base.Params))
	}
	for stage := range n {
		var own [][]*tensor.Tensor
		for unit := stage; unit < s.Units; unit += n {
			own = append(own, deltas[unit])
		}
		part, err := Consume(s.Unsplit(), train.ModelOf(s, base, stage), own, lay)
		if err != nil {
			return nil, fmt.Errorf("stage %d: %w", stage, err)
		}
		at := 0
		for i, where := range s.Pipeline.Stage {
			if where != stage {
				continue
			}
			next.Params[i] = part.Params[at]
			for k := range next.Outer {
				next.Outer[k][i] = part.Outer[k][at]
			}
			at++
		}
	}
	return next, nil
}
