package referee

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/chain/referee/question"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/protocol/dispute"
)

// A unit carries the residual of its update: the difference that was to be sent less the payload that was sent. A
// replica's residual is its difference from the checkpoint. A part of the residual is made from the sources of the
// update and from the payload that both parties agree on. Where rounds overlap, the residual is a share of the
// difference and does not depend on the payload. The residual of a parameter that is not sent is the whole difference.

// carry computes a part of the carried state of one parameter again.
func (r *Referee) carry(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	if question.IsMoment(r.spec, r.step, c) {
		return r.moment(c, payload)
	}
	x, err := parameter.Of(r.spec, r.step, c.Round, c.Index)
	if err != nil {
		return dispute.Ruling{}, err
	}
	shape, parts := x.Shape, x.ResidualParts()
	if c.Part >= parts {
		return dispute.Ruling{}, evidence.Wrong("the carried state of parameter %d has no part %d", c.Index, c.Part)
	}
	var p evidence.Carry
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isCheckpoint(c, p.Sources.Checkpoint); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isPrior(c, p.Sources.State); err != nil {
		return dispute.Ruling{}, err
	}
	lo, hi := x.ResidualRange(c.Part)
	left, err := r.toSend(c, x, p.Sources, lo, hi)
	if err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.handOn(c, x, p, lo, hi, left); err != nil {
		return dispute.Ruling{}, err
	}
	done, err := evidence.Resume(c.Part, c.Before, p.Sources.Before, lo*shape.DType.Size()/tensor.LeafBytes)
	if err != nil {
		return dispute.Ruling{}, err
	}
	return rule(carried(shape, done, left, c.Part+1 == parts), c.Output), nil
}

// handOn computes the carried state of elements lo up to hi of a parameter, from the elements that are to be sent.
func (r *Referee) handOn(c dispute.Claim, x parameter.Sent, p evidence.Carry, lo, hi int, elements []float32) error {
	if r.spec.Exchange.Overlap > 0 {
		if r.spec.Sends(c.Round, r.names[c.Index]) {
			outer.GoOn(r.spec.Exchange, elements)
		}
		return nil
	}
	root, sent, err := update.RestoreLeaves(x.Codec, x.Shape, lo, hi, p.Sent)
	if err != nil {
		return fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	if len(p.Update) != len(r.names) || canon.NewTree(p.Update).Root() != c.Update || p.Update[c.Index] != root {
		return evidence.Wrong("these are not leaves of the update %s", c.Update.Short())
	}
	codec.LeftOut(elements, sent.F32())
	return nil
}

// carried is the digest of the beginning of a tensor up to and with a part: the root after the last part.
func carried(shape tensor.Shape, done *canon.Frontier, x []float32, last bool) canon.Digest {
	t := tensor.FromF32(x, len(x))
	for i := range t.Shape.Leaves() {
		done.Push(canon.Leaf(t.Leaf(i)))
	}
	if last {
		return tensor.RootOf(shape, done.Root())
	}
	return evidence.Progress{Done: done.Nodes()}.Digest()
}
