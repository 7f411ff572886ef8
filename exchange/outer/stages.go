package outer

import (
	"fmt"

	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// advanceStages is Consume for units that are stages of replicas.
func advanceStages(s *train.Spec, base *train.Checkpoint, deltas [][]*tensor.Tensor,
	lay func(*tensor.Tensor) *tensor.Tensor) (*train.Checkpoint, error) {
	if len(deltas) != int(s.Units) {
		return nil, fmt.Errorf("%w: %d updates of %d units", ErrRound, len(deltas), s.Units)
	}
	return ByUnits(s, base, func(unit uint32) ([]*tensor.Tensor, error) { return deltas[unit], nil }, lay)
}

// ByUnits is Consume for units that are stages of replicas, of which one stage at a time is in memory: get returns the
// unpacked update of a unit, which is released once it is combined. The updates of a stage, one of each replica, move
// the parameters of that stage. Each parameter has the bits that it has where units are whole replicas.
func ByUnits(s *train.Spec, base *train.Checkpoint, get func(unit uint32) ([]*tensor.Tensor, error),
	lay func(*tensor.Tensor) *tensor.Tensor) (*train.Checkpoint, error) {
	if s.Pipeline == nil || len(base.Params) != len(s.Pipeline.Stage) {
		return nil, fmt.Errorf("%w: %d parameters, which are not those of the stages", ErrRound, len(base.Params))
	}
	n := s.Pipeline.Stages()
	next := &train.Checkpoint{Round: base.Round + 1, Names: base.Names, Params: make([]*tensor.Tensor, len(base.Params)),
		Outer: make([][]*tensor.Tensor, len(base.Outer))}
	for k := range next.Outer {
		next.Outer[k] = make([]*tensor.Tensor, len(base.Params))
	}
	for stage := range n {
		own, held := [][]*tensor.Tensor(nil), 0
		for unit := stage; unit < s.Units; unit += n {
			delta, err := get(unit)
			if err != nil {
				return nil, err
			}
			own = append(own, delta)
			for _, d := range delta {
				held += d.Shape.Bytes()
			}
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
		own = nil
		tensor.Dropped(held) // before the updates of the next one are decoded
	}
	return next, nil
}
