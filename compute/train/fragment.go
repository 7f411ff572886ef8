package train

import (
	"strings"

	"github.com/starling-network/starling/compute/tensor"
)

// Fragment is that of a parameter, of so many fragments of the layers: its layer is the first number in its name, and
// neighbours are in different ones. What is in no layer is in the last.
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

// UnderWay reports whether what units sent of a parameter in the round before is in no checkpoint yet while they train
// a round. What was handed on to them is a share of that then, and not to be sent again.
func (s *Spec) UnderWay(round uint32, name string) bool {
	return s.Exchange.Overlap > 0 && round > 0 && s.Carries(round-1) && s.Sends(round-1, name)
}

// origin is what the update of a unit leads from: the parameters of the checkpoint, or those that the unit began with
// where what was handed on to it is under way.
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
