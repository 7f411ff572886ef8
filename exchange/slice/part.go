package slice

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/train"
)

// part is a slice of a checkpoint, as it travels. The same slice has the same bytes for every member that computes it.
type part struct {
	Round uint32 `cbor:"1,keyasint"`
	Slice uint32 `cbor:"2,keyasint"`
	// of the parameters, then of each list of outer state: little-endian float32, canonical NaNs
	Ranges [][]byte `cbor:"3,keyasint"`
}

// EncodePart returns the bytes of a slice of a checkpoint, given as Base gives it.
func (p *Plan) EncodePart(sub *train.Checkpoint, slice int) []byte {
	x := part{Round: sub.Round, Slice: uint32(slice)}
	for _, t := range sub.Tensors() {
		x.Ranges = append(x.Ranges, canonical(t))
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
	zeros := train.Zeros(base.Params, 1+len(base.Outer))
	return Joining{&train.Checkpoint{Round: base.Round + 1, Names: base.Names, Params: zeros[0], Outer: zeros[1:]}, p}
}

// Add reads the bytes of a slice into its place. Errors about them wrap ErrPart; the caller must know that they are
// the agreed ones.
func (j Joining) Add(slice int, b []byte) error {
	var x part
	if err := canon.Unmarshal(b, &x); err != nil {
		return fmt.Errorf("%w: %w", ErrPart, err)
	}
	ranges, tensors := j.plan.slices[slice], j.Tensors()
	if want := len(ranges) * (1 + len(j.Outer)); x.Round != j.Round || x.Slice != uint32(slice) || len(x.Ranges) != want {
		return fmt.Errorf("%w: it is slice %d of round %d with %d ranges, want %d of %d with %d", ErrPart, x.Slice, x.Round,
			len(x.Ranges), slice, j.Round, want)
	}
	for i, b := range x.Ranges {
		list, r := i/len(ranges), ranges[i%len(ranges)]
		t, err := tensor.FromBytes(tensor.Make(tensor.Float32, r.Hi-r.Lo), b)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrPart, err)
		}
		t.Canonicalize() // the same state has the same bytes
		copy(tensors[list*len(j.Params)+r.Parameter].F32()[r.Lo:r.Hi], t.F32())
	}
	return nil
}
