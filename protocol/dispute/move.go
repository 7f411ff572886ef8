package dispute

import (
	"fmt"

	"github.com/starling-network/starling/canon"
)

// Move is one of its fields.
type Move struct {
	States *States         `cbor:"1,keyasint,omitempty"` // by the asserter
	Tree   *Tree           `cbor:"2,keyasint,omitempty"` // by the asserter
	Nodes  *Nodes          `cbor:"3,keyasint,omitempty"` // by the asserter
	Pick   *Pick           `cbor:"4,keyasint,omitempty"` // by the challenger
	Bind   *BindClaim      `cbor:"5,keyasint,omitempty"` // by the challenger, the last
	Leaf   *Leaf           `cbor:"6,keyasint,omitempty"` // by the challenger, the last
	Point  *PointNonFinite `cbor:"7,keyasint,omitempty"` // by the asserter
}

// States shows the states at the Boundaries of the current interval: state roots after inner steps, or partial states
// after parts of an output or a payload.
type States struct {
	Digests []canon.Digest `cbor:"1,keyasint"`
}

// Tree shows the topmost node of a tree and what Nodes shows below it, nothing if the tree has a single leaf. The tree
// is that of the operators' outputs of the disputed step, or that of the update.
type Tree struct {
	Top      canon.Digest   `cbor:"1,keyasint"`
	Children []canon.Digest `cbor:"2,keyasint,omitempty"`
}

// Nodes shows the nodes below the picked one: one level down, or two while it is on the third level or higher.
type Nodes struct {
	Children []canon.Digest `cbor:"1,keyasint"`
}

// Pick chooses the first of the digests shown last that differs, from 0. After the states shown comes the disputed
// one.
type Pick struct {
	Index uint32 `cbor:"1,keyasint"`
}

// PointNonFinite names a part of the update that is not finite, if the worker committed to no update: part Part of the
// payload of parameter Index cannot be computed.
type PointNonFinite struct {
	Index uint32 `cbor:"1,keyasint"`
	Part  uint64 `cbor:"2,keyasint"`
}

// BindClaim claims that the shown trace is right, and that the disputed state does not follow from it.
type BindClaim struct {
	Payload []byte `cbor:"1,keyasint"` // for the referee
}

// Leaf chooses like Pick where nothing is left to narrow, and brings the referee's payload for recomputing it.
type Leaf struct {
	Index   uint32 `cbor:"1,keyasint"`
	Payload []byte `cbor:"2,keyasint"` // for the referee
}

// Encode returns the canonical bytes.
func (m Move) Encode() []byte { return canon.MustMarshal(m) }

// Final reports whether the move is the last, which the referee judges.
func (m Move) Final() bool { return m.Bind != nil || m.Leaf != nil }

const envelope = 64 // bytes around a payload, at most

// Decode reads canonical bytes from any sender. The error wraps ErrEncoding.
func Decode(b []byte) (Move, error) {
	var m Move
	if len(b) > MaxLeaf+envelope {
		return m, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrEncoding, len(b), MaxLeaf+envelope)
	}
	if err := canon.Unmarshal(b, &m); err != nil {
		return Move{}, fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	set := 0
	for _, is := range []bool{m.States != nil, m.Tree != nil, m.Nodes != nil, m.Pick != nil, m.Bind != nil, m.Leaf != nil,
		m.Point != nil} {
		if is {
			set++
		}
	}
	if set != 1 {
		return Move{}, fmt.Errorf("%w: %d moves in one", ErrEncoding, set)
	}
	return m, nil
}
