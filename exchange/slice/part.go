package slice

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// part is a slice of a checkpoint, as it travels. The same slice has the same bytes whoever computed it.
type part struct {
	Round    uint32   `cbor:"1,keyasint"`
	Slice    uint32   `cbor:"2,keyasint"`
	Params   [][]byte `cbor:"3,keyasint"` // of every range of the plan: little-endian float32, canonical NaNs
	Momentum [][]byte `cbor:"4,keyasint"`
}

// EncodePart returns the bytes of a slice of a checkpoint, given as Base gives it.
func (p *Plan) EncodePart(sub *train.Checkpoint, slice int) []byte {
	x := part{Round: sub.Round, Slice: uint32(slice)}
	for i := range sub.Params {
		x.Params, x.Momentum = append(x.Params, canonical(sub.Params[i])), append(x.Momentum, canonical(sub.Momentum[i]))
	}
	return canon.MustMarshal(x)
}

func canonical(t *tensor.Tensor) []byte {
	c := t.Clone()
	c.Canonicalize()
	return c.Bytes()
}

// Joining is a checkpoint that is being put together from its slices.
type Joining struct {
	*train.Checkpoint
	plan *Plan
}

// Join begins to put the checkpoint after base together.
func (p *Plan) Join(base *train.Checkpoint) Joining {
	next := &train.Checkpoint{Round: base.Round + 1, Names: base.Names}
	for _, t := range base.Params {
		next.Params, next.Momentum = append(next.Params, tensor.New(t.Shape)), append(next.Momentum, tensor.New(t.Shape))
	}
	return Joining{next, p}
}

// Add reads the bytes of a slice into its place. Errors about them wrap ErrPart; that they are the right ones is for the
// caller to know.
func (j Joining) Add(slice int, b []byte) error {
	var x part
	if err := canon.Unmarshal(b, &x); err != nil {
		return fmt.Errorf("%w: %w", ErrPart, err)
	}
	ranges := j.plan.slices[slice]
	if x.Round != j.Round || x.Slice != uint32(slice) || len(x.Params) != len(ranges) || len(x.Momentum) != len(ranges) {
		return fmt.Errorf("%w: it is slice %d of round %d with %d ranges, want %d of %d with %d", ErrPart, x.Slice, x.Round, len(x.Params), slice, j.Round, len(ranges))
	}
	for i, r := range ranges {
		for _, v := range []struct {
			to   *tensor.Tensor
			from []byte
		}{{j.Params[r.Parameter], x.Params[i]}, {j.Momentum[r.Parameter], x.Momentum[i]}} {
			t, err := tensor.FromBytes(tensor.Make(tensor.Float32, r.Hi-r.Lo), v.from)
			if err != nil {
				return fmt.Errorf("%w: %w", ErrPart, err)
			}
			t.Canonicalize() // the same state has the same bytes
			copy(v.to.F32()[r.Lo:r.Hi], t.F32())
		}
	}
	return nil
}
