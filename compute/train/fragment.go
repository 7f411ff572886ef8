package train

import (
	"strings"

	"github.com/starling-network/starling/compute/tensor"
)

// Fragment returns the fragment of a parameter, of the given number of fragments of the layers: its layer is the
// first number in its name, and neighbouring layers are in different fragments. Parameters without a layer are in the
// last fragment.
func Fragment(name string, fragments uint32) uint32 {
	at := strings.IndexFunc(name, isDigit)
	if at < 0 {
		return fragments - 1
	}
	var layer uint64
	for _, c := range name[at:] {
		if !isDigit(c) {
			break
		}
		layer = layer*10%uint64(fragments) + uint64(c-'0')
	}
	return uint32(layer % uint64(fragments))
}

func isDigit(c rune) bool { return c >= '0' && c <= '9' }

// Sends reports whether units send anything of a parameter in a round. All of it, but where rounds exchange fragments:
// then one of them in turn, and everything in the last round of a group.
func (s *Spec) Sends(round uint32, name string) bool {
	x := s.Exchange
	return x.Fragments == 0 || !s.Carries(round) || Fragment(name, x.Fragments) == round%x.Carry%x.Fragments
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
