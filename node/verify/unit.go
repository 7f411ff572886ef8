package verify

import (
	"context"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/role/engine"
	"github.com/starling-network/starling/role/hold"
)

// sent is an update: its CID, and its bytes, or what was attested in their place in a tolerant run. Many bytes are put
// aside until all updates of the round are there.
type sent struct {
	cid         string
	round, unit uint32
	root        canon.Digest
	encoded     hold.Blob
	tolerated   []*tensor.Tensor
}

// unit computes a unit that begins with the carried state from, and returns its update and the state that it carries to
// the next round.
func (v *verification) unit(ctx context.Context, task *train.Task, base *train.Checkpoint, unit uint32,
	from *hold.Tensors) (sent, *hold.Tensors, error) {
	var given []*tensor.Tensor
	own := false
	learns, added := v.b.Spec.Rollout != nil, hold.Added(v.b.Spec, len(base.Params))
	if from != nil {
		var err error
		if given, own, err = from.Without(added); err != nil {
			return sent{}, nil, err
		}
	}
	r, err := task.Resume(base, unit, given, own, nil, func(train.Progress) error { return ctx.Err() })
	if err != nil {
		return sent{}, nil, err
	}
	if v.b.Spec.Exchange.Moments { // of the end state only those are carried on
		clear(r.End[:len(base.Names)])
	} else {
		r.End = nil
	}
	if learns { // what it learnt from is not a part of its update
		given = nil
	}
	if from != nil && added > 0 {
		if given, err = from.First(added); err != nil {
			return sent{}, nil, err
		}
	}
	u, left, err := outer.Commit(v.b.Spec, base.Names, base.Round, unit, r, given)
	if err != nil {
		return sent{}, nil, err
	}
	on := v.carried(left)
	served, _, err := engine.Pack(v.b.Spec, v.b.Step, v.b.Slices, u)
	if err != nil {
		return sent{}, nil, err
	}
	return v.sentAs(base, u, served), on, nil
}

// carried puts the state aside that a unit passes on; nil for none.
func (v *verification) carried(state []*tensor.Tensor) *hold.Tensors {
	if state == nil {
		return nil
	}
	return hold.Put(v.aside(), state)
}

func (v *verification) sentAs(base *train.Checkpoint, u *update.Update, served []byte) sent {
	s := sent{cid: blob.Of(served).String(), round: base.Round, unit: u.Unit, root: u.Root()}
	if v.b.Slices > 0 { // what is served is an index
		served = u.Encode()
	}
	s.encoded = hold.PutBlob(v.aside(), served)
	return s
}

func (v *verification) unpack(base *train.Checkpoint, s sent) ([]*tensor.Tensor, error) {
	encoded, err := s.encoded.Get()
	if err != nil {
		return nil, err
	}
	return outer.Unpack(v.b.Spec, base, s.round, s.unit, s.root, encoded)
}

// applied takes the updates that the checkpoint after another is made of.
func (v *verification) applied(base *train.Checkpoint) (cids []string, deltas [][]*tensor.Tensor, err error) {
	n := len(v.b.Spec.Applied(base.Round)) * int(v.b.Spec.Units)
	for _, s := range v.take(n) {
		delta := s.tolerated
		if delta == nil {
			if delta, err = v.unpack(base, s); err != nil {
				return nil, nil, err
			}
			v.lay(delta)
		}
		cids, deltas = append(cids, s.cid), append(deltas, delta)
	}
	return cids, deltas, nil
}

// take removes and returns the oldest updates. It clears them in the array under v.sent, which keeps them in memory
// otherwise.
func (v *verification) take(n int) []sent {
	first := slices.Clone(v.sent[:n])
	clear(v.sent[:n])
	v.sent = v.sent[n:]
	return first
}

// lay moves an update out of memory until its parameters are combined, if they are combined one by one.
func (v *verification) lay(delta []*tensor.Tensor) {
	x := v.b.Spec.Exchange
	room := v.aside().Room(v.b.Size().Parameters())
	if room == nil || !aggregate.ByCoordinate(x.Rule) || x.Pairs > 0 || x.Policies > 0 {
		return
	}
	for i, d := range delta {
		delta[i] = room(d)
		delta[i].Rest()
	}
}
