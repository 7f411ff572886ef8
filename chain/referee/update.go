package referee

import (
	"errors"
	"fmt"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/parts"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/transform"
	"github.com/starling-network/starling/protocol/dispute"
)

// update makes a part of the payload of one parameter again.
func (r *Referee) update(c dispute.Claim, payload []byte) (dispute.Ruling, error) {
	m, err := parameter.Of(r.spec, r.step, c.Round, c.Index)
	if err != nil {
		return dispute.Ruling{}, err
	}
	if c.Part >= uint64(m.Parts()) {
		return dispute.Ruling{}, evidence.Wrong("the payload of parameter %d has no part %d", c.Index, c.Part)
	}
	var p evidence.Update
	if err := evidence.Decode(payload, &p); err != nil {
		return dispute.Ruling{}, err
	}
	if err := errors.Join(r.isCheckpoint(c, p.Checkpoint), r.isPrior(c, p.State)); err != nil {
		return dispute.Ruling{}, err
	}
	part := int(c.Part)
	lo, hi := m.Elements(part)
	delta, err := r.toSend(c, m, p, lo, hi)
	if err != nil {
		return dispute.Ruling{}, err
	}
	if c.Output.IsZero() {
		return finite(delta), nil
	}
	done, err := evidence.Resume(c.Part, c.Before, p.Before, m.Leaves(part))
	if err != nil {
		return dispute.Ruling{}, err
	}
	leaves, state, err := m.Make(part, p.Before.State, delta)
	switch {
	case errors.Is(err, codec.ErrState):
		return dispute.Ruling{}, fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	case err != nil:
		return nothing, nil
	}
	return rule(grown(done, leaves, state, part+1 == m.Parts()), c.Output), nil
}

// toSend returns what elements lo up to hi of the update of a parameter are before they are compressed.
func (r *Referee) toSend(c dispute.Claim, x parameter.Sent, p evidence.Update, lo, hi int) ([]float32, error) {
	shape := x.Shape
	from, to := transform.Reach(x.Transform, shape, lo, hi)
	base, err := evidence.Elements(shape, p.Base, from, to, parametersOf(r, c, p.Checkpoint)[c.Index])
	if err != nil {
		return nil, err
	}
	end, err := evidence.Elements(shape, p.End, from, to, p.State[c.Index])
	if err != nil {
		return nil, err
	}
	if c.From.IsZero() || !parameter.Adds(r.spec, c.Round, r.names[c.Index]) {
		return x.ToSend(r.spec, base, end, nil, lo, hi), nil
	}
	if err := r.isFrom(c, p.From); err != nil {
		return nil, err
	}
	left, err := evidence.Elements(shape, p.Left, lo, hi, p.From[c.Index])
	if err != nil {
		return nil, err
	}
	return x.ToSend(r.spec, base, end, left, lo, hi), nil
}

func (r *Referee) isFrom(c dispute.Claim, roots []canon.Digest) error {
	if r.spec.Led {
		if len(roots) != len(parts.Given(r.step)) || train.CarriedRoot(roots) != c.From {
			return evidence.Wrong("these are not the data %s", c.From.Short())
		}
		return nil
	}
	if r.spec.Rollout != nil {
		each := len(parts.HandedOn(r.whole.step))
		if len(roots) != each*len(r.spec.Apart().ReadsAll(0)) || parts.GivenRootOf(roots, each) != c.From {
			return evidence.Wrong("these are not the answers %s", c.From.Short())
		}
		return nil
	}
	if len(roots) != len(train.CarriedNames(r.spec.Exchange, r.step)) || train.CarriedRoot(roots) != c.From {
		return evidence.Wrong("these are not the tensors of the carried state %s", c.From.Short())
	}
	return nil
}

// finite answers whether a part of an update cannot be made because an element of it is not finite, as the worker
// claims.
func finite(delta []float32) dispute.Ruling {
	return dispute.Ruling{Right: slices.ContainsFunc(delta, func(x float32) bool { return x-x != 0 })}
}

// grown is the digest of the beginning of a payload up to and with a part: the root after the last part.
func grown(done *canon.Frontier, leaves [][]byte, state []byte, last bool) canon.Digest {
	for _, d := range canon.Leaves(leaves) {
		done.Push(d)
	}
	if last {
		return done.Root()
	}
	return evidence.Progress{Done: done.Nodes(), State: state}.Digest()
}
