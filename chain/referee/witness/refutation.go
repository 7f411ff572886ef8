package witness

import (
	"fmt"
	"math"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/replica"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/exchange/update"
)

// Refutation returns the payload that shows an attested checkpoint to be wrong: right is the one that the base and the
// updates of a number of units lead to, each given as the tensors that its root is made of. get returns the update of a
// unit; of stages only the units of one stage are asked for. evidence.ErrPayload says that the checkpoints do not
// differ, or not in their tensors.
func Refutation(s *train.Spec, base, right, attested *train.Checkpoint, units int,
	get func(i int) (*update.Update, error)) ([]byte, error) {
	if err := slice.Check(s.Exchange); err != nil {
		return nil, err
	}
	p := evidence.Combination{Base: train.Roots(base.Tensors()), Next: train.Roots(attested.Tensors())}
	own := train.Roots(right.Tensors())
	if len(own) != len(p.Next) {
		return nil, evidence.Wrong("checkpoints of %d and of %d tensors", len(own), len(p.Next))
	}
	at := 0
	for at < len(own) && own[at] == p.Next[at] {
		at++
	}
	if at == len(own) {
		return nil, evidence.Wrong("the checkpoints have the same tensors")
	}
	p.Tensor = uint32(at)
	shape := base.Params[at%len(base.Names)].Shape
	each, err := codec.Tile(s.Exchange.Codec, shape)
	if err != nil {
		return nil, err
	}
	lo := difference(right.Tensors()[at], attested.Tensors()[at]) / each * each
	p.Tile = uint32(lo / each)
	return fill(p, s, base, attested, units, get, lo, min(lo+each, shape.Elements()))
}

// difference is the first element in which two tensors of one shape differ.
func difference(x, y *tensor.Tensor) int {
	a, b := x.Clone(), y.Clone()
	a.Canonicalize()
	b.Canonicalize()
	for i, v := range a.F32() {
		if math.Float32bits(v) != math.Float32bits(b.F32()[i]) {
			return i
		}
	}
	return 0
}

// fill brings what elements lo up to hi of the tensor are made from.
func fill(p evidence.Combination, s *train.Spec, base, attested *train.Checkpoint, units int,
	get func(i int) (*update.Update, error), lo, hi int) ([]byte, error) {
	n := len(base.Names)
	parameter := int(p.Tensor) % n
	shape := base.Params[parameter].Shape
	at := evidence.LeavesOf(shape, lo, hi)
	for k := range 1 + len(base.Outer) {
		x, _, err := evidence.Show(base.Tensors()[k*n+parameter], at)
		if err != nil {
			return nil, err
		}
		p.Before = append(p.Before, x)
	}
	var err error
	if p.After, _, err = evidence.Show(attested.Tensors()[p.Tensor], at); err != nil {
		return nil, err
	}
	among, all := parameter, make([]int, units)
	for i := range all {
		all[i] = i
	}
	if s.Pipeline != nil {
		all = replica.OfUnits(s.Pipeline, parameter, all)
		among, _ = s.Pipeline.Place(parameter)
	}
	for _, i := range all {
		u, err := get(i)
		if err != nil {
			return nil, err
		}
		var sent evidence.Sent
		payload := u.Payloads[among]
		if sent.Proof, err = update.LeafProofOf(s.Exchange.Codec, shape, lo, hi, payload,
			codec.PayloadTree(payload)); err != nil {
			return nil, err
		}
		if sent.Cover, err = u.Tree().Cover([]int{among}); err != nil {
			return nil, err
		}
		p.Updates = append(p.Updates, sent)
	}
	b := canon.MustMarshal(p)
	if len(b) > evidence.MaxRefutation {
		return nil, fmt.Errorf("%w: a refutation of %d bytes, at most %d are taken", evidence.ErrTooLarge, len(b),
			evidence.MaxRefutation)
	}
	return b, nil
}
