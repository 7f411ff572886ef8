package train

import (
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train/fragment"
)

// Sends reports whether units send anything of a parameter in a round. All of it, but where rounds exchange fragments:
// then one of them in turn, and everything in the last round of a group.
func (s *Spec) Sends(round uint32, name string) bool {
	x := s.Exchange
	return x.Fragments == 0 || !s.Carries(round) || fragment.Of(name, x.Fragments) == round%x.Carry%x.Fragments
}

// UnderWay reports whether the updates of a parameter that units sent in the previous round are in no checkpoint yet
// while the units train this round. The carried state of the parameter is then a share of those updates, and is not
// sent again.
func (s *Spec) UnderWay(round uint32, name string) bool {
	return s.Exchange.Overlap > 0 && round > 0 && s.Carries(round-1) && s.Sends(round-1, name)
}

// origin is the tensors that the update of a unit is relative to: the parameters of the checkpoint, or, where the
// carried state is under way, those that the unit began with.
func (s *Spec) origin(base *Checkpoint, from []*tensor.Tensor) []*tensor.Tensor {
	if from == nil {
		return base.Params
	}
	origin := make([]*tensor.Tensor, len(base.Params))
	for i, p := range base.Params {
		if origin[i] = p; s.UnderWay(base.Round, base.Names[i]) {
			origin[i] = Difference(p, from[i])
		}
	}
	return origin
}
