package referee

import (
	"fmt"

	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
)

// Names names what disputes about units of a work are about: the kind of an operator or the input that it reads, a
// parameter of the update, or a tensor of the carried state.
func Names(s *train.Spec, step *program.Program) dispute.Names {
	params, handed := train.Params(step), train.HandedOn(s.Exchange, step)
	return func(k dispute.Kind, index uint32) string {
		i := int(index)
		switch {
		case k == dispute.Tile && i < len(step.Ops):
			if op := &step.Ops[i]; op.Kind == program.Input {
				return fmt.Sprintf("input %q", op.Name)
			}
			return step.Ops[i].Kind.String()
		case k == dispute.Update && i < len(params):
			return params[i]
		case k == dispute.Carry && i < len(handed):
			return handed[i]
		}
		return ""
	}
}
