package referee

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/protocol/dispute"
)

// A unit hands on the residual of its update: the difference that was to be sent less the payload that was sent. A
// replica's residual is its difference from the checkpoint. A part of the residual is made from the sources of the
// update and from the payload that both parties agree on. Where rounds overlap, the residual is a share of the
// difference and does not depend on the payload. The residual of a parameter that is not sent is the whole difference.

// carryPayload shows what a part of what a parameter hands on is made from.
type carryPayload struct {
	Sources updatePayload    `cbor:"1,keyasint"`
	Update  []canon.Digest   `cbor:"2,keyasint"` // roots of the payloads of the update
	Sent    update.LeafProof `cbor:"3,keyasint"` // of the one of the parameter
}

// feedback is the error feedback of a job that has it.
func feedback(s *train.Spec) codec.Feedback {
	return codec.Feedback{Decay: float32(s.Exchange.Feedback)}
}

// handsOnEach is how many elements of what a parameter hands on are made together: those of a piece of the payload.
func (x sent) handsOnEach() int {
	each, err := codec.Alignment(x.codec, x.shape)
	if err != nil {
		return x.shape.Elements()
	}
	return each
}

// handsOnParts is in how many parts what a parameter hands on is made.
func (x sent) handsOnParts() uint64 {
	each := x.handsOnEach()
	return uint64((x.shape.Elements() + each - 1) / each)
}

// handsOnRange returns which elements are made in a part.
func (x sent) handsOnRange(part uint64) (lo, hi int) {
	each := x.handsOnEach()
	return int(part) * each, min((int(part)+1)*each, x.shape.Elements())
}

// carry makes a part of what one parameter hands on again.
func (r *Referee) carry(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	if isMoment(r.spec, r.step, c) {
		return r.moment(c, payload)
	}
	x, err := sentOf(r.spec, r.step, c.Round, c.Index)
	if err != nil {
		return dispute.Ruling{}, err
	}
	shape, parts := x.shape, x.handsOnParts()
	if c.Part >= parts {
		return dispute.Ruling{}, wrong("what parameter %d hands on has no part %d", c.Index, c.Part)
	}
	var p carryPayload
	if err := decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isCheckpoint(c, p.Sources.Checkpoint); err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.isPrior(c, p.Sources.State); err != nil {
		return dispute.Ruling{}, err
	}
	lo, hi := x.handsOnRange(c.Part)
	left, err := r.toSend(c, x, p.Sources, lo, hi)
	if err != nil {
		return dispute.Ruling{}, err
	}
	if err := r.handOn(c, x, p, lo, hi, left); err != nil {
		return dispute.Ruling{}, err
	}
	done, err := opened(c.Part, c.Before, p.Sources.Before, lo*shape.DType.Size()/tensor.LeafBytes)
	if err != nil {
		return dispute.Ruling{}, err
	}
	return rule(carried(shape, done, left, c.Part+1 == parts), c.Output), nil
}

// handOn makes what is handed on of elements lo up to hi of what is to be sent of a parameter.
func (r *Referee) handOn(c dispute.Claim, x sent, p carryPayload, lo, hi int, elements []float32) error {
	if r.spec.Exchange.Overlap > 0 {
		if r.spec.Sends(c.Round, r.names[c.Index]) {
			outer.GoOn(r.spec.Exchange, elements)
		}
		return nil
	}
	root, sent, err := update.RestoreLeaves(x.codec, x.shape, lo, hi, p.Sent)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPayload, err)
	}
	if len(p.Update) != len(r.names) || canon.NewTree(p.Update).Root() != c.Update || p.Update[c.Index] != root {
		return wrong("these are not leaves of the update %s", c.Update.Short())
	}
	codec.LeftOut(elements, sent.F32())
	return nil
}

// carried is the digest of what there is of a tensor after a part with these elements: its root after the last.
func carried(shape tensor.Shape, done *canon.Frontier, x []float32, last bool) canon.Digest {
	t := tensor.FromF32(x, len(x))
	for i := range t.Shape.Leaves() {
		done.Push(canon.Leaf(t.Leaf(i)))
	}
	if last {
		return tensor.RootOf(shape, done.Root())
	}
	return progress{Done: done.Nodes()}.digest()
}

// handsOn makes the payload of a parameter, and what that leaves out.
func (w *Witness) handsOn(c dispute.Claim) (payload []byte, left *tensor.Tensor, err error) {
	delta, err := w.toSend(c)
	if err != nil {
		return nil, nil, err
	}
	x, err := sentOf(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return nil, nil, err
	}
	left = tensor.FromF32(delta, x.shape.Dims...)
	if payload, err = codec.Encode(x.codec, left); err != nil {
		return nil, nil, err
	}
	if s := w.task.Spec; s.Exchange.Overlap > 0 {
		if s.Sends(c.Round, w.base.Names[c.Index]) {
			outer.GoOn(s.Exchange, left.F32())
		}
		return payload, left, nil
	}
	received, err := codec.Decode(x.codec, payload, x.shape)
	if err == nil {
		codec.LeftOut(left.F32(), received.F32())
	}
	return payload, left, err
}

// carryAfter is payloadAfter for what a parameter hands on.
func (w *Witness) carryAfter(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	_, left, err := w.handsOn(c)
	if err != nil {
		return nil, err
	}
	x, err := sentOf(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return nil, err
	}
	parts, tree := x.handsOnParts(), left.Tree()
	out := make([]canon.Digest, len(after))
	for i, part := range after {
		if out[i] = left.Root(); part < parts {
			out[i] = progress{Done: x.frontier(tree, part)}.digest()
		}
	}
	return out, nil
}

// frontier is what is done of the tree of what a parameter hands on before a part.
func (x sent) frontier(tree *canon.Tree, part uint64) []canon.Digest {
	lo, _ := x.handsOnRange(part)
	return tree.Frontier(lo * x.shape.DType.Size() / tensor.LeafBytes)
}

// carry brings what a part of what a parameter hands on is made from.
func (w *Witness) carry(c dispute.Claim) (p carryPayload, err error) {
	payload, left, err := w.handsOn(c)
	if err != nil {
		return p, err
	}
	x, err := sentOf(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return p, err
	}
	shape := left.Shape
	lo, hi := x.handsOnRange(c.Part)
	if c.Part > 0 {
		p.Sources.Before.Done = x.frontier(left.Tree(), c.Part)
	}
	if w.task.Spec.Exchange.Overlap > 0 {
		return p, w.sources(c, x, &p.Sources, lo, hi)
	}
	sent, err := w.Result(dispute.Update)
	if err != nil {
		return p, err
	}
	p.Update = leaves(sent)
	if p.Sent, err = update.LeafProofOf(x.codec, shape, lo, hi, payload, codec.PayloadTree(payload)); err != nil {
		return p, err
	}
	return p, w.sources(c, x, &p.Sources, lo, hi)
}
