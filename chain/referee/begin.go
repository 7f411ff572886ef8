package referee

import (
	"slices"
	"strings"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/program"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/protocol/dispute"
)

// The first state of a replica is named by the roots of what it is made from, which both parties agree on. What is made
// of them, the checkpoint less what was handed on, or less the place of the replica in it, is what the first step
// reads: an input that is disputed tile by tile.

// beginPayload shows what a tile of a parameter that a replica begins with is made from.
type beginPayload struct {
	Before progress       `cbor:"1,keyasint"`
	State  []canon.Digest `cbor:"2,keyasint"` // roots that the agreed state is named by
	Base   excerpt        `cbor:"3,keyasint"` // of the parameter in the checkpoint
	Left   excerpt        `cbor:"4,keyasint"` // and in what was handed on
}

// below reports whether the unit of a claim begins below the parameters of its checkpoint.
func below(s *train.Spec, c dispute.Claim) bool {
	return s.Exchange.Replicas() && (s.Exchange.Pairs > 0 || !c.From.IsZero())
}

// begins reports whether a claim is about a parameter that a replica begins with.
func begins(s *train.Spec, p *program.Program, c dispute.Claim) bool {
	if !below(s, c) || c.Kind != dispute.Tile || c.Step > 0 || uint64(c.Index) >= uint64(len(p.Ops)) {
		return false
	}
	op := &p.Ops[c.Index]
	name, is := strings.CutPrefix(op.Name, train.Param)
	return op.Kind == program.Input && is && slices.Contains(train.Params(p), name)
}

// begin makes a tile of a parameter that a replica begins with.
func (r *Referee) begin(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	var p beginPayload
	if err := decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isPrior(c, p.State); err != nil {
		return dispute.Ruling{}, err
	}
	op := &r.step.Ops[c.Index]
	i, from := r.index[op.Name], len(r.index)
	lo, hi := op.Out.LeafRange(int(c.Part))
	base, err := elements(op.Out, p.Base, lo, hi, p.State[i])
	if err != nil {
		return dispute.Ruling{}, err
	}
	left, err := elements(op.Out, p.Left, lo, hi, p.State[from+i])
	if err != nil {
		return dispute.Ruling{}, err
	}
	begun := minus(base, left)
	return r.made(c, 1, p.Before, func([]byte) ([]byte, error) { return tensor.FromF32(begun, len(begun)).Leaf(0), nil })
}

// begin brings what a tile of a parameter that a replica begins with is made from.
func (w *Witness) begin(c dispute.Claim) (p beginPayload, err error) {
	if err := w.look(c.Step, c.Index); err != nil {
		return p, err
	}
	i := slices.Index(train.StateNames(w.task.Step), w.task.Step.Ops[c.Index].Name)
	p.State, p.Before.Done = train.Roots(w.session.Named()), w.tree.Frontier(int(c.Part))
	if p.Base, _, err = excerptOf(w.base.Params[i], []int{int(c.Part)}); err == nil {
		left, _ := train.Split(w.task.Spec.Exchange, len(w.base.Params), w.from)
		p.Left, _, err = excerptOf(w.task.Spec.Exchange.Below(w.base, w.unit, left)[i], []int{int(c.Part)})
	}
	return p, err
}
