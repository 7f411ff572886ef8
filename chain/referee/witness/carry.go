package witness

import (
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/protocol/dispute"
)

// handsOn makes the payload of a parameter, and what that leaves out.
func (w *Witness) handsOn(c dispute.Claim) (payload []byte, left *tensor.Tensor, err error) {
	delta, err := w.toSend(c)
	if err != nil {
		return nil, nil, err
	}
	x, err := parameter.Of(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return nil, nil, err
	}
	left = tensor.FromF32(delta, x.Shape.Dims...)
	if payload, err = codec.Encode(x.Codec, left); err != nil {
		return nil, nil, err
	}
	if s := w.task.Spec; s.Exchange.Overlap > 0 {
		if s.Sends(c.Round, w.base.Names[c.Index]) {
			outer.GoOn(s.Exchange, left.F32())
		}
		return payload, left, nil
	}
	received, err := codec.Decode(x.Codec, payload, x.Shape)
	if err == nil {
		codec.LeftOut(left.F32(), received.F32())
	}
	return payload, left, err
}

// carryAfter is payloadAfter for the carried state of a parameter.
func (w *Witness) carryAfter(c dispute.Claim, after []uint64) ([]canon.Digest, error) {
	_, left, err := w.handsOn(c)
	if err != nil {
		return nil, err
	}
	x, err := parameter.Of(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return nil, err
	}
	parts, tree := x.ResidualParts(), left.Tree()
	out := make([]canon.Digest, len(after))
	for i, part := range after {
		if out[i] = left.Root(); part < parts {
			out[i] = evidence.Progress{Done: x.ResidualFrontier(tree, part)}.Digest()
		}
	}
	return out, nil
}

// carry brings the sources of a part of the carried state of a parameter.
func (w *Witness) carry(c dispute.Claim) (p evidence.Carry, err error) {
	payload, left, err := w.handsOn(c)
	if err != nil {
		return p, err
	}
	x, err := parameter.Of(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return p, err
	}
	shape := left.Shape
	lo, hi := x.ResidualRange(c.Part)
	if c.Part > 0 {
		p.Sources.Before.Done = x.ResidualFrontier(left.Tree(), c.Part)
	}
	if w.task.Spec.Exchange.Overlap > 0 {
		return p, w.sources(c, x, &p.Sources, lo, hi)
	}
	sent, err := w.Result(dispute.Update)
	if err != nil {
		return p, err
	}
	p.Update = leaves(sent)
	if p.Sent, err = update.LeafProofOf(x.Codec, shape, lo, hi, payload, codec.PayloadTree(payload)); err != nil {
		return p, err
	}
	return p, w.sources(c, x, &p.Sources, lo, hi)
}

// moment brings the roots of the state that a carried moment is in.
func (w *Witness) moment(c dispute.Claim) (p evidence.State, err error) {
	if err := w.at(c.Step); err != nil {
		return p, err
	}
	return evidence.State{State: w.state()}, nil
}

// handing are the roots of the state that the unit carries, once its session has ended, given those of its residuals.
func (w *Witness) handing(left []canon.Digest) []canon.Digest {
	x := w.task.Spec.Exchange
	if !x.Moments {
		return left
	}
	if !x.CarriesResidual() {
		left = nil
	}
	return slices.Concat(left, w.state()[len(w.model.Params):])
}
