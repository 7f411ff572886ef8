package referee

import (
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/question"
	"github.com/starling-network/starling/protocol/dispute"
)

// The moments that a unit carries are in its last state, which both parties agree on: the roots that name it say which
// tensors they are, and none of them is computed again.

// moment answers which moment a unit carries.
func (r *Referee) moment(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	place, _ := question.Moment(r.spec, r.step, c)
	if c.Part > 0 {
		return dispute.Ruling{}, evidence.Wrong("a carried moment has no part %d", c.Part)
	}
	var p evidence.State
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isPrior(c, p.State); err != nil {
		return dispute.Ruling{}, err
	}
	return rule(p.State[place], c.Output), nil
}
