package referee

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/slice"
	"github.com/starling-network/starling/exchange/update"
	"github.com/starling-network/starling/protocol/run/work"
)

// MaxRefutation is the largest size of the payload of a refutation, in bytes.
const MaxRefutation = 3 << 19

// combinationPayload shows one tile of one tensor of the next checkpoint, and everything that it is made from.
type combinationPayload struct {
	Tensor  uint32         `cbor:"1,keyasint"` // of the checkpoint, in the order of train.CheckpointRoot
	Tile    uint32         `cbor:"2,keyasint"` // of codec.Tile elements
	Base    []canon.Digest `cbor:"3,keyasint"` // roots of the tensors of the base
	Next    []canon.Digest `cbor:"4,keyasint"` // and of what is attested
	Before  []excerpt      `cbor:"5,keyasint"` // of the parameter in the base, then of each tensor of its outer state
	After   excerpt        `cbor:"6,keyasint"` // of the tensor in what is attested
	Updates []sentPayload  `cbor:"7,keyasint"` // of every update, the parameter
}

// sentPayload is the part of an update that a tile is made from.
type sentPayload struct {
	Excerpt update.LeafProof `cbor:"1,keyasint"`
	Cover   []canon.Digest   `cbor:"2,keyasint"` // of the payload in update.Update.Tree
}

// Refute answers whether a payload shows that a checkpoint which members attested is not the one that its updates lead
// to, and says what it shows. The payload may be anybody's. An error that wraps ErrPayload says why it shows nothing.
func (r *Referee) Refute(c work.Combination, payload []byte) (string, error) {
	if err := slice.Check(r.spec.Exchange); err != nil {
		return "", fmt.Errorf("%w: %w", ErrPayload, err)
	}
	if len(payload) > MaxRefutation {
		return "", wrong("%d bytes, at most %d are taken", len(payload), MaxRefutation)
	}
	var p combinationPayload
	if err := decode(payload, &p); err != nil {
		return "", err
	}
	t, err := tileOf(r, c, p)
	if err != nil {
		return "", err
	}
	right, err := recombine(r, c, p, t)
	if err != nil {
		return "", err
	}
	claimed, err := elements(t.shape, p.After, t.lo, t.hi, p.Next[p.Tensor])
	if err != nil {
		return "", err
	}
	own := tensor.FromF32(right, len(right))
	own.Canonicalize()
	if slices.EqualFunc(own.F32(), claimed, sameBits) {
		return "", wrong("elements %d to %d of %s are what the updates lead to", t.lo, t.hi, t.name)
	}
	return fmt.Sprintf("elements %d to %d of %s of checkpoint %d are not what the updates lead to", t.lo, t.hi, t.name,
		c.Next.Round), nil
}

// attestedTile is a tile of a tensor of a checkpoint.
type attestedTile struct {
	shape     tensor.Shape
	name      string
	parameter int
	list      int // 0: of the parameters, otherwise of the outer state
	lo, hi    int // elements
}

// tileOf finds the tile that a payload is about, and holds the roots that the payload brings to those of the
// combination.
func tileOf(r *Referee, c work.Combination, p combinationPayload) (t attestedTile, err error) {
	n := len(r.names) * (1 + r.outer)
	switch {
	case len(p.Base) != n || train.CheckpointRoot(c.Base.Round, p.Base) != c.Base.Root:
		return t, wrong("these are not the tensors of checkpoint %d", c.Base.Round)
	case len(p.Next) != n || train.CheckpointRoot(c.Next.Round, p.Next) != c.Next.Root:
		return t, wrong("these are not the tensors of checkpoint %d", c.Next.Round)
	case int64(p.Tensor) >= int64(n):
		return t, wrong("a checkpoint has no tensor %d", p.Tensor)
	case len(p.Before) != 1+r.outer || len(p.Updates) != len(c.Updates):
		return t, wrong("%d tensors of the base and %d updates, wanted %d and %d", len(p.Before), len(p.Updates), 1+r.outer,
			len(c.Updates))
	}
	t.list, t.parameter = int(p.Tensor)/len(r.names), int(p.Tensor)%len(r.names)
	t.name = r.names[t.parameter]
	t.shape = paramShape(r.step, t.name)
	each, err := codec.Tile(r.spec.Exchange.Codec, t.shape)
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	if uint64(p.Tile)*uint64(each) >= uint64(t.shape.Elements()) {
		return t, wrong("%q has no tile %d", t.name, p.Tile)
	}
	t.lo = int(p.Tile) * each
	t.hi = min(t.lo+each, t.shape.Elements())
	return t, nil
}

// recombine makes the elements of a tile of the next checkpoint again.
func recombine(r *Referee, c work.Combination, p combinationPayload, t attestedTile) ([]float32, error) {
	base := &train.Checkpoint{Round: c.Base.Round, Names: []string{t.name}, Outer: make([][]*tensor.Tensor, r.outer)}
	for k, x := range p.Before {
		part, err := elements(t.shape, x, t.lo, t.hi, p.Base[k*len(r.names)+t.parameter])
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
		root, delta, err := update.RestoreLeaves(r.spec.Exchange.Codec, t.shape, t.lo, t.hi, p.Updates[i].Excerpt)
		if err != nil {
			return nil, fmt.Errorf("%w: update of unit %d: %w", ErrPayload, sent.Unit, err)
		}
		has, err := canon.Covered(len(r.names), []int{t.parameter}, []canon.Digest{root}, p.Updates[i].Cover)
		if err != nil || has != sent.Root {
			return nil, wrong("these are not leaves of the update of unit %d", sent.Unit)
		}
		deltas[i] = flat(delta.F32())
	}
	next, err := outer.Advance(r.spec, base, deltas)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPayload, err)
	}
	return next.Tensors()[t.list].F32(), nil
}

func flat(x []float32) []*tensor.Tensor { return []*tensor.Tensor{tensor.FromF32(x, len(x))} }

// Refutation returns the payload that shows an attested checkpoint to be wrong: right is the one that the base and the
// updates lead to, each given as the tensors that its root is made of. ErrPayload says that they do not differ, or not
// in their tensors.
func Refutation(s *train.Spec, base, right, attested *train.Checkpoint, updates []*update.Update) ([]byte, error) {
	if err := slice.Check(s.Exchange); err != nil {
		return nil, err
	}
	p := combinationPayload{Base: train.Roots(base.Tensors()), Next: train.Roots(attested.Tensors())}
	own := train.Roots(right.Tensors())
	if len(own) != len(p.Next) {
		return nil, wrong("checkpoints of %d and of %d tensors", len(own), len(p.Next))
	}
	at := 0
	for at < len(own) && own[at] == p.Next[at] {
		at++
	}
	if at == len(own) {
		return nil, wrong("the checkpoints have the same tensors")
	}
	p.Tensor = uint32(at)
	shape := base.Params[at%len(base.Names)].Shape
	each, err := codec.Tile(s.Exchange.Codec, shape)
	if err != nil {
		return nil, err
	}
	lo := difference(right.Tensors()[at], attested.Tensors()[at]) / each * each
	p.Tile = uint32(lo / each)
	return p.fill(s, base, attested, updates, lo, min(lo+each, shape.Elements()))
}

func sameBits(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) }

// difference is the first element in which two tensors of one shape differ.
func difference(x, y *tensor.Tensor) int {
	a, b := x.Clone(), y.Clone()
	a.Canonicalize()
	b.Canonicalize()
	for i, v := range a.F32() {
		if !sameBits(v, b.F32()[i]) {
			return i
		}
	}
	return 0
}

// fill brings what elements lo up to hi of the tensor are made from.
func (p combinationPayload) fill(s *train.Spec, base, attested *train.Checkpoint, updates []*update.Update, lo,
	hi int) ([]byte, error) {
	n := len(base.Names)
	parameter := int(p.Tensor) % n
	shape := base.Params[parameter].Shape
	at := leavesOf(shape, lo, hi)
	for k := range 1 + len(base.Outer) {
		x, _, err := excerptOf(base.Tensors()[k*n+parameter], at)
		if err != nil {
			return nil, err
		}
		p.Before = append(p.Before, x)
	}
	var err error
	if p.After, _, err = excerptOf(attested.Tensors()[p.Tensor], at); err != nil {
		return nil, err
	}
	for _, u := range updates {
		var sent sentPayload
		payload := u.Payloads[parameter]
		if sent.Excerpt, err = update.LeafProofOf(s.Exchange.Codec, shape, lo, hi, payload,
			codec.PayloadTree(payload)); err != nil {
			return nil, err
		}
		if sent.Cover, err = u.Tree().Cover([]int{parameter}); err != nil {
			return nil, err
		}
		p.Updates = append(p.Updates, sent)
	}
	b := canon.MustMarshal(p)
	if len(b) > MaxRefutation {
		return nil, fmt.Errorf("%w: a refutation of %d bytes, at most %d are taken", ErrTooLarge, len(b), MaxRefutation)
	}
	return b, nil
}
