package referee

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/chain/referee/evidence"
	"github.com/starling-network/starling/chain/referee/parameter"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/compute/train/replica"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/protocol/run/work"
)

// Refute answers whether a payload shows that a checkpoint which members attested is not the one that its updates lead
// to, and says what it shows. The payload may be anybody's. An error that wraps evidence.ErrPayload says why it shows
// nothing.
func (r *Referee) Refute(c work.Combination, payload []byte) (string, error) {
	if err := slice.Check(r.spec.Exchange); err != nil {
		return "", fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	if len(payload) > evidence.MaxRefutation {
		return "", evidence.Wrong("%d bytes, at most %d are taken", len(payload), evidence.MaxRefutation)
	}
	var p evidence.Combination
	if err := evidence.Decode(payload, &p); err != nil {
		return "", err
	}
	t, err := tileOf(r, &c, p)
	if err != nil {
		return "", err
	}
	right, err := recombine(r, c, p, t)
	if err != nil {
		return "", err
	}
	claimed, err := evidence.Elements(t.shape, p.After, t.lo, t.hi, p.Next[p.Tensor])
	if err != nil {
		return "", err
	}
	own := tensor.FromF32(right, len(right))
	own.Canonicalize()
	if slices.EqualFunc(own.F32(), claimed, sameBits) {
		return "", evidence.Wrong("elements %d to %d of %s are what the updates lead to", t.lo, t.hi, t.name)
	}
	return fmt.Sprintf("elements %d to %d of %s of checkpoint %d are not what the updates lead to", t.lo, t.hi, t.name,
		c.Next.Round), nil
}

// attestedTile is a tile of a tensor of a checkpoint.
type attestedTile struct {
	shape     tensor.Shape
	name      string
	parameter int
	// among the parameters of an update, and the number of these
	among, params int
	list          int // 0: of the parameters, otherwise of the outer state
	lo, hi        int // elements
}

// tileOf finds the tile that a payload is about, and holds the roots that the payload brings to those of the
// combination.
//
// Of units that are stages it leaves only those in the combination that hold the parameter.
func tileOf(r *Referee, c *work.Combination, p evidence.Combination) (t attestedTile, err error) {
	n := len(r.names) * (1 + r.outer)
	if r.spec.Pipeline != nil && int64(p.Tensor) < int64(n) {
		c.Updates = replica.OfUnits(r.spec.Pipeline, int(p.Tensor)%len(r.names), c.Updates)
	}
	switch {
	case len(p.Base) != n || train.CheckpointRoot(c.Base.Round, p.Base) != c.Base.Root:
		return t, evidence.Wrong("these are not the tensors of checkpoint %d", c.Base.Round)
	case len(p.Next) != n || train.CheckpointRoot(c.Next.Round, p.Next) != c.Next.Root:
		return t, evidence.Wrong("these are not the tensors of checkpoint %d", c.Next.Round)
	case int64(p.Tensor) >= int64(n):
		return t, evidence.Wrong("a checkpoint has no tensor %d", p.Tensor)
	case len(p.Before) != 1+r.outer || len(p.Updates) != len(c.Updates):
		return t, evidence.Wrong("%d tensors of the base and %d updates, wanted %d and %d", len(p.Before), len(p.Updates),
			1+r.outer, len(c.Updates))
	}
	t.list, t.parameter = int(p.Tensor)/len(r.names), int(p.Tensor)%len(r.names)
	t.name, t.among, t.params = r.names[t.parameter], t.parameter, len(r.names)
	if r.spec.Pipeline != nil {
		t.among, t.params = r.spec.Pipeline.Place(t.parameter)
	}
	t.shape = parameter.Shape(r.step, t.name)
	each, err := codec.Tile(r.spec.Exchange.Codec, t.shape)
	if err != nil {
		return t, fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	if uint64(p.Tile)*uint64(each) >= uint64(t.shape.Elements()) {
		return t, evidence.Wrong("%q has no tile %d", t.name, p.Tile)
	}
	t.lo = int(p.Tile) * each
	t.hi = min(t.lo+each, t.shape.Elements())
	return t, nil
}

// recombine makes the elements of a tile of the next checkpoint again.
func recombine(r *Referee, c work.Combination, p evidence.Combination, t attestedTile) ([]float32, error) {
	base := &train.Checkpoint{Round: c.Base.Round, Names: []string{t.name}, Outer: make([][]*tensor.Tensor, r.outer)}
	for k, x := range p.Before {
		part, err := evidence.Elements(t.shape, x, t.lo, t.hi, p.Base[k*len(r.names)+t.parameter])
		if err != nil {
			return nil, err
		}
		if k == 0 {
			base.Params = flat(part)
		} else {
			base.Outer[k-1] = flat(part)
		}
	}
	deltas := make([][]*tensor.Tensor, len(c.Updates))
	for i, sent := range c.Updates {
		root, delta, err := update.RestoreLeaves(r.spec.Exchange.Codec, t.shape, t.lo, t.hi, p.Updates[i].Proof)
		if err != nil {
			return nil, fmt.Errorf("%w: update of unit %d: %w", evidence.ErrPayload, sent.Unit, err)
		}
		has, err := canon.Covered(t.params, []int{t.among}, []canon.Digest{root}, p.Updates[i].Cover)
		if err != nil || has != sent.Root {
			return nil, evidence.Wrong("these are not leaves of the update of unit %d", sent.Unit)
		}
		deltas[i] = flat(delta.F32())
	}
	next, err := outer.Advance(r.spec.Unsplit(), base, deltas)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", evidence.ErrPayload, err)
	}
	return next.Tensors()[t.list].F32(), nil
}

func flat(x []float32) []*tensor.Tensor { return []*tensor.Tensor{tensor.FromF32(x, len(x))} }

func sameBits(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }
