// Package question classifies the claims of a dispute about a unit: which tensor a claim is about, in how many parts it
// is asked, and its name for readers.
//
// Both parties and the referee read a claim with it. It answers no claim.
package question

import (
	"fmt"
	"slices"
	"strings"

	"github.com/starling-network/starling/chain/referee/division"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/recompute"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
)

// Names names what disputes about units of a work are about: the kind of an operator or the input that it reads, a
// parameter of the update, or a tensor of the carried state.
func Names(s *train.Spec, step *program.Program) dispute.Names {
	params, handed := train.Params(step), train.CarriedNames(s.Exchange, step)
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

// Below reports whether the unit of a claim begins below the parameters of its checkpoint.
func Below(s *train.Spec, c dispute.Claim) bool {
	return s.Exchange.Replicas() && (s.Exchange.Pairs > 0 || !c.From.IsZero())
}

// Begins reports whether a claim is about a parameter that a replica begins with.
func Begins(s *train.Spec, p *program.Program, c dispute.Claim) bool {
	if !Below(s, c) || c.Kind != dispute.Tile || c.Step > 0 || uint64(c.Index) >= uint64(len(p.Ops)) {
		return false
	}
	op := &p.Ops[c.Index]
	name, is := strings.CutPrefix(op.Name, train.Param)
	return op.Kind == program.Input && is && slices.Contains(train.Params(p), name)
}

// Moment is the place in the state of a carried tensor, if that is a moment.
func Moment(s *train.Spec, p *program.Program, c dispute.Claim) (place int, is bool) {
	if c.Kind != dispute.Carry || !s.Exchange.Moments {
		return 0, false
	}
	handed, state := train.CarriedNames(s.Exchange, p), train.StateNames(p)
	if uint64(c.Index) >= uint64(len(handed)) {
		return 0, false
	}
	place = len(state) - len(handed) + int(c.Index)
	return place, place >= len(train.Params(p))
}

// IsMoment reports whether a claim is about a carried moment.
func IsMoment(s *train.Spec, p *program.Program, c dispute.Claim) bool {
	_, is := Moment(s, p, c)
	return is
}

// Parts is the number of parts in which a claim is asked, given the divisions of operators.
func Parts(s *train.Spec, p *program.Program, c dispute.Claim,
	divide func(i int) (recompute.Division, error)) uint64 {
	if c.Kind == dispute.Tile {
		if Begins(s, p, c) {
			return uint64(p.Ops[c.Index].Out.Leaves())
		}
		return division.Parts(p, c.Index, divide)
	}
	if IsMoment(s, p, c) || c.Kind == dispute.Carry && s.Pipeline != nil {
		return 1
	}
	x, err := parameter.Of(s, p, c.Round, c.Index)
	if err != nil {
		return 1
	}
	if c.Kind == dispute.Carry {
		return x.ResidualParts()
	}
	return uint64(x.Parts())
}
