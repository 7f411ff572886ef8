package referee

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
)

// The moments that a unit hands on are in its last state, which both parties agree on: which tensors they are follows
// from the roots that it is named by, and nothing of them is computed again.

// momentOf is the place in the state of a tensor that a unit hands on, if that is a moment.
func momentOf(s *train.Spec, p *program.Program, c dispute.Claim) (place int, is bool) {
	if c.Kind != dispute.Carry || !s.Exchange.Moments {
		return 0, false
	}
	handed, state := train.HandedOn(s.Exchange, p), train.StateNames(p)
	if uint64(c.Index) >= uint64(len(handed)) {
		return 0, false
	}
	place = len(state) - len(handed) + int(c.Index)
	return place, place >= len(train.Params(p))
}

func isMoment(s *train.Spec, p *program.Program, c dispute.Claim) bool {
	_, is := momentOf(s, p, c)
	return is
}

// moment answers which moment a unit hands on.
func (r *Referee) moment(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	place, _ := momentOf(r.spec, r.step, c)
	if c.Part > 0 {
		return dispute.Ruling{}, wrong("a moment that is handed on has no part %d", c.Part)
	}
	var p statePayload
	if err := decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isPrior(c, p.State); err != nil {
		return dispute.Ruling{}, err
	}
	return rule(p.State[place], c.Output), nil
}

// moment brings the roots of the state that a moment is handed on from.
func (w *Witness) moment(c dispute.Claim) (p statePayload, err error) {
	if err := w.at(c.Step); err != nil {
		return p, err
	}
	return statePayload{State: train.Roots(w.session.Tensors())}, nil
}

// handing are the roots of what the unit hands on, whose session is at its end, given those of what it left out.
func (w *Witness) handing(left []canon.Digest) []canon.Digest {
	x := w.task.Spec.Exchange
	if !x.Moments {
		return left
	}
	if !x.Leaves() {
		left = nil
	}
	return slices.Concat(left, train.Roots(w.session.Tensors()[len(w.base.Params):]))
}
