package referee

import (
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/protocol/dispute"
)

// The first state of a replica is named by the roots of its sources, which both parties agree on. The first step reads
// the checkpoint less the carried state, or less the place of the replica in the checkpoint: an input that is disputed
// tile by tile.

// begin makes a tile of a parameter that a replica begins with.
func (r *Referee) begin(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	var p evidence.Begin
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isPrior(c, p.State); err != nil {
		return dispute.Ruling{}, err
	}
	op := &r.step.Ops[c.Index]
	i, from := r.index[op.Name], len(r.index)
	lo, hi := op.Out.LeafRange(int(c.Part))
	base, err := evidence.Elements(op.Out, p.Base, lo, hi, p.State[i])
	if err != nil {
		return dispute.Ruling{}, err
	}
	left, err := evidence.Elements(op.Out, p.Left, lo, hi, p.State[from+i])
	if err != nil {
		return dispute.Ruling{}, err
	}
	begun := parameter.Minus(base, left)
	return r.made(c, 1, p.Before, func([]byte) ([]byte, error) { return tensor.FromF32(begun, len(begun)).Leaf(0), nil })
}
