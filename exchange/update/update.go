// Package update is the compressed update of a work unit as it travels: its content, the root that a commitment binds,
// the checks of a receiver, and leaf proofs of some elements without the rest.
package update

import (
	"fmt"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/exchange/codec"
)

// Update is the compressed update of one work unit, as it travels. A commitment binds every byte of it.
type Update struct {
	Round    uint32   `cbor:"1,keyasint"`
	Unit     uint32   `cbor:"2,keyasint"`
	Codec    string   `cbor:"3,keyasint"` // of the job; a parameter may have another in a round
	Payloads [][]byte `cbor:"4,keyasint"` // one per parameter, in order
}

// Pack compresses a pseudo-gradient.
func Pack(name string, round, unit uint32, delta []*tensor.Tensor) (*Update, error) {
	u := &Update{Round: round, Unit: unit, Codec: name}
	for i, t := range delta {
		p, err := codec.Encode(name, t)
		if err != nil {
			return nil, fmt.Errorf("parameter %d: %w", i, err)
		}
		u.Payloads = append(u.Payloads, p)
	}
	return u, nil
}

// PackOptions is how the updates of a round are packed.
type PackOptions struct {
	Name  string   // codec of the job
	Each  []string // codecs of the parameters, in order; none: that of the job for all
	Decay float32  // of the residual of the update before
}

func (p PackOptions) codecOf(parameter int) string {
	if len(p.Each) == 0 {
		return p.Name
	}
	return p.Each[parameter]
}

func known(name string) (codec.Codec, error) {
	c, ok := codec.ByName(name)
	if !ok {
		return nil, fmt.Errorf("codec: %q is not known", name)
	}
	return c, nil
}

// Pack compresses a pseudo-gradient with error feedback. from is the residual of the last update of the unit, nil for
// none; left is the residual of this one.
func (p PackOptions) Pack(
	round, unit uint32,
	delta, from []*tensor.Tensor,
) (u *Update, left []*tensor.Tensor, err error) {
	if from == nil {
		from = make([]*tensor.Tensor, len(delta))
	}
	u = &Update{Round: round, Unit: unit, Codec: p.Name}
	for i, t := range delta {
		c, err := known(p.codecOf(i))
		if err != nil {
			return nil, nil, err
		}
		payload, rest, err := codec.Feedback{Codec: c, Decay: p.Decay}.Encode(from[i], t)
		if err != nil {
			return nil, nil, fmt.Errorf("parameter %d: %w", i, err)
		}
		u.Payloads, left = append(u.Payloads, payload), append(left, rest)
	}
	return u, left, nil
}

// Encode returns the bytes of the blob.
func (u *Update) Encode() []byte {
	size := headBytes + len(u.Codec)
	for _, p := range u.Payloads {
		size += headBytes + len(p)
	}
	return canon.MustMarshalSized(u, size)
}

// headBytes is room for the head of a payload, and for the fields of an update.
const headBytes = 32

// Overhead is how many bytes Encode adds to payloads of these sizes, in an early round.
func Overhead(codec string, sizes []int) int {
	n := len((&Update{Codec: codec, Payloads: make([][]byte, len(sizes))}).Encode()) - len(sizes)
	for _, size := range sizes {
		head := canon.MustMarshal(uint64(size)) // as long as the length of a string of bytes
		n += len(head)
	}
	return n
}

// Tree is over the roots of the codec.PayloadTree of every payload.
func (u *Update) Tree() *canon.Tree {
	leaves := make([]canon.Digest, len(u.Payloads))
	for i, p := range u.Payloads {
		leaves[i] = codec.PayloadTree(p).Root()
	}
	return canon.NewTree(leaves)
}

// Root is the digest that a commitment binds: the root of Tree.
func (u *Update) Root() canon.Digest { return u.Tree().Root() }

// Expect is the data about an update that its receiver has before it reads the update.
type Expect struct {
	Round, Unit uint32
	PackOptions
	Shapes []tensor.Shape
	Root   canon.Digest // committed; zero to skip the check
}

// Unpack reads the bytes of an update and restores the pseudo-gradient. It refuses every difference from the
// specification and the commitment.
func Unpack(b []byte, want Expect) (*Update, []*tensor.Tensor, error) {
	u := new(Update)
	if err := canon.Unmarshal(b, u); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", codec.ErrPayload, err)
	}
	switch {
	case u.Round != want.Round || u.Unit != want.Unit || u.Codec != want.Name:
		return nil, nil, fmt.Errorf("%w: it is %s of unit %d of round %d", codec.ErrPayload, u.Codec, u.Unit, u.Round)
	case len(u.Payloads) != len(want.Shapes):
		return nil, nil, fmt.Errorf("%w: %d tensors, want %d", codec.ErrPayload, len(u.Payloads), len(want.Shapes))
	case !want.Root.IsZero() && u.Root() != want.Root:
		return nil, nil, fmt.Errorf("%w: not what its worker committed to", codec.ErrPayload)
	}
	delta := make([]*tensor.Tensor, len(u.Payloads))
	for i, p := range u.Payloads {
		t, err := codec.Decode(want.codecOf(i), p, want.Shapes[i])
		if err != nil {
			return nil, nil, fmt.Errorf("parameter %d: %w", i, err)
		}
		delta[i] = t
	}
	return u, delta, nil
}
