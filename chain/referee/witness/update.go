package witness

import (
	"errors"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/transform"
	"github.com/starling-network/starling/protocol/dispute"
)

// payloadAfter makes the payload of a parameter and returns what there is of it after each of the given numbers of
// parts, ascending, and what there is in the open after the last of them, if that is not the whole. From a part on that
// cannot be made there is nothing.
func (w *Witness) payloadAfter(c dispute.Claim, after []uint64) ([]canon.Digest, evidence.Progress, error) {
	m, err := parameter.Of(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return nil, evidence.Progress{}, err
	}
	delta, err := w.toSend(c)
	if err != nil {
		return nil, evidence.Progress{}, err
	}
	var out []canon.Digest
	var p evidence.Progress
	done := new(canon.Frontier)
	for part := range m.Parts() + 1 {
		for len(out) < len(after) && after[len(out)] == uint64(part) {
			d := p.Digest()
			if part == m.Parts() {
				d = done.Root()
			}
			out = append(out, d)
		}
		if len(out) == len(after) {
			break
		}
		lo, hi := m.Elements(part)
		leaves, state, err := m.Make(part, p.State, delta[lo:hi])
		if errors.Is(err, codec.ErrPayload) { // not finite
			return append(out, make([]canon.Digest, len(after)-len(out))...), evidence.Progress{}, nil
		}
		if err != nil {
			return nil, evidence.Progress{}, err
		}
		for _, d := range canon.Leaves(leaves) {
			done.Push(d)
		}
		p = evidence.Progress{Done: done.Nodes(), State: state}
	}
	return out, p, nil
}

// update brings what a part of the payload of a parameter is made from.
func (w *Witness) update(c dispute.Claim) (p evidence.Update, err error) {
	m, err := parameter.Of(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return p, err
	}
	if _, p.Before, err = w.payloadAfter(c, []uint64{c.Part}); err != nil {
		return p, err
	}
	lo, hi := m.Elements(int(c.Part))
	return p, w.sources(c, m, &p, lo, hi)
}

// sources brings what elements lo up to hi of the update of a parameter are made from.
func (w *Witness) sources(c dispute.Claim, x parameter.Sent, p *evidence.Update, lo, hi int) (err error) {
	end := w.session.Tensors()
	p.Checkpoint, p.State = w.based.of(w.base.Tensors(), 0), w.state()
	shape := x.Shape
	left := w.left(c)
	if left != nil {
		p.From = w.carried.of(w.from, 0)
	}
	if lo == hi {
		return nil
	}
	at := evidence.LeavesOf(shape, lo, hi)
	if left != nil {
		if p.Left, _, err = evidence.Show(left[c.Index], at); err != nil {
			return err
		}
	}
	from, to := transform.Reach(x.Transform, shape, lo, hi)
	at = evidence.LeavesOf(shape, from, to)
	if p.Base, _, err = evidence.Show(w.model.Params[c.Index], at); err != nil {
		return err
	}
	p.End, _, err = evidence.Show(end[c.Index], at)
	return err
}

// toSend returns the update of a parameter before it is compressed.
func (w *Witness) toSend(c dispute.Claim) ([]float32, error) {
	if err := w.at(c.Step); err != nil {
		return nil, err
	}
	x, err := parameter.Of(w.task.Spec, w.task.Step, c.Round, c.Index)
	if err != nil {
		return nil, err
	}
	base, end := w.model.Params[c.Index].F32(), w.session.Tensors()[c.Index].F32()
	if left := w.left(c); left != nil {
		return x.ToSend(w.task.Spec, base, end, left[c.Index].F32(), 0, len(base)), nil
	}
	return x.ToSend(w.task.Spec, base, end, nil, 0, len(base)), nil
}

// left is the carried state of the unit, if the update of the parameter of a claim is computed from it.
func (w *Witness) left(c dispute.Claim) []*tensor.Tensor {
	if !parameter.Adds(w.task.Spec, c.Round, w.base.Names[c.Index]) {
		return nil
	}
	left, _ := train.Split(w.task.Spec.Exchange, len(w.model.Params), w.from)
	return left
}

// begin brings what a tile of a parameter that a replica begins with is made from.
func (w *Witness) begin(c dispute.Claim) (p evidence.Begin, err error) {
	if err := w.look(c.Step, c.Index); err != nil {
		return p, err
	}
	i := slices.Index(train.StateNames(w.task.Step), w.task.Step.Ops[c.Index].Name)
	p.State, p.Before.Done = w.state(), w.tree.Frontier(int(c.Part))
	if p.Base, _, err = evidence.Show(w.model.Params[i], []int{int(c.Part)}); err == nil {
		left, _ := train.Split(w.task.Spec.Exchange, len(w.model.Params), w.from)
		p.Left, _, err = evidence.Show(train.Below(w.task.Spec.Exchange, w.base, w.unit, left)[i], []int{int(c.Part)})
	}
	return p, err
}
