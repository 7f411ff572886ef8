// Package handed shows that a stage of a model has committed to other values than it has signed: that it sent, or that
// it received. The evidence convicts alone, and neither party is asked.
//
// Whether the values that a stage has computed follow from those that it received is the subject of a dispute, in
// package referee.
package handed

import (
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/stages"
	"github.com/starling-network/starling/compute/stages/order"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/protocol/dispute"
	"github.com/starling-network/starling/protocol/handover"
)

// Frame is the roots of the values of a frame.
type Frame struct {
	Phase  order.Phase    `cbor:"1,keyasint"`
	Number uint32         `cbor:"2,keyasint"`
	Roots  []canon.Digest `cbor:"3,keyasint"`
}

// Evidence is the frames of a link in a step, which a side has signed, and the state after the step to which the stage
// of that side has committed.
type Evidence struct {
	Link    handover.Link    `cbor:"1,keyasint"`
	Step    uint32           `cbor:"2,keyasint"`
	Before  handover.Head    `cbor:"3,keyasint"`
	Frames  []Frame          `cbor:"4,keyasint"`
	Voucher handover.Voucher `cbor:"5,keyasint"`
	State   []canon.Digest   `cbor:"6,keyasint"` // roots of its tensors, in the order of train.StateRoot
}

// Encode returns the canonical bytes.
func (e Evidence) Encode() []byte { return canon.MustMarshal(e) }

// Decode reads evidence from anybody. The error wraps evidence.ErrPayload or evidence.ErrTooLarge.
func Decode(b []byte) (e Evidence, err error) {
	if len(b) > dispute.MaxLeaf {
		return e, fmt.Errorf("%w: %d bytes, at most %d are taken", evidence.ErrTooLarge, len(b), dispute.MaxLeaf)
	}
	return e, evidence.Decode(b, &e)
}

// Judge reports which value the stage that signed the voucher has committed to with another root than it signed, in the
// state with the root committed after the step. verify checks its signature. The error wraps evidence.ErrPayload: the
// evidence shows nothing.
func Judge(p *stages.Plan, e Evidence, committed canon.Digest,
	verify func(statement, signature []byte) bool) (value int32, err error) {
	from, to := int(e.Link.From), int(e.Link.To)
	if max(from, to) >= len(p.Stages) || e.Voucher.By != handover.Sender && e.Voucher.By != handover.Receiver {
		return 0, evidence.Wrong("no link from stage %d to stage %d of %d", from, to, len(p.Stages))
	}
	signer := from
	if e.Voucher.By == handover.Receiver {
		signer = to
	}
	if train.StateRoot(e.Step+1, e.State) != committed {
		return 0, evidence.Wrong("these are not the tensors of the state %s", committed.Short())
	}
	head := e.Before
	for _, f := range e.Frames {
		head = head.After(e.Step, uint8(f.Phase), f.Number, f.Roots)
	}
	if head != e.Voucher.Head ||
		!verify(handover.Statement(e.Link, head, e.Voucher.By), e.Voucher.Signature) {
		return 0, evidence.Wrong("the %s has not signed these frames", e.Voucher.By)
	}
	names := parts.StateNames(p.Stages[signer].Whole)
	if len(names) != len(e.State) {
		return 0, evidence.Wrong("%d tensors of a state of %d", len(e.State), len(names))
	}
	for _, f := range e.Frames {
		expected := p.Frame(from, to, order.Task{Phase: f.Phase, Number: int(f.Number)})
		if len(expected) != len(f.Roots) { // the side has signed a frame that the plan does not have
			return 0, evidence.Wrong("a frame of %d values, the plan has %d", len(f.Roots), len(expected))
		}
		for i, t := range expected {
			if at := slices.Index(names, t.Name()); e.State[at] != f.Roots[i] {
				return t.Value, nil
			}
		}
	}
	return 0, evidence.Wrong("the state has the values that the %s has signed", e.Voucher.By)
}
