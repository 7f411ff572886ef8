package audit

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/starling-network/starling/canon"
)

// ErrOpening is wrapped by every reason why an opening does not show that a verifier held the state it sealed.
var ErrOpening = errors.New("audit: the opening does not show the sealed state")

// MaxOpening bounds the canonical bytes of an opening: a tile, and its proofs in four trees of a state of any size.
const MaxOpening = 32 << 10

// Subject names the audit that a seal answers.
type Subject struct {
	Verifier string
	Job      string
	Round    uint32
	Unit     uint32
	Attempt  uint32
	Segment  uint32 // to the end of which the unit is executed, counted from 1; 0: all of it, and its update
}

// End is the committed state root that the seal is checked against; roots are those at the start and after every
// segment.
func (s Subject) End(roots []canon.Digest) canon.Digest {
	if s.Segment == 0 || int(s.Segment) >= len(roots) {
		return roots[len(roots)-1]
	}
	return roots[s.Segment]
}

func (s Subject) key() canon.Digest {
	return canon.Sum("starling/seal-key/3", []byte(s.Verifier), []byte(s.Job),
		numbers(s.Round, s.Unit, s.Attempt, s.Segment))
}

// leaf is the keyed digest of a tile of the state whose own leaf digest is given.
func leaf(key canon.Digest, tensor, tile int, of canon.Digest) canon.Digest {
	return canon.Sum("starling/seal-leaf/2", key[:], numbers(uint32(tensor), uint32(tile)), of[:])
}

func numbers(n ...uint32) (b []byte) {
	for _, v := range n {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}

// Seal is a verifier's answer to an audit: the state at the end of its execution, rooted once more with leaves that
// are keyed with the verifier's identity. The worker's commitment reveals one digest of that state and no digest below
// it, so only a verifier that computed the state can make a seal that it can open, and every verifier has another
// seal. The idea is that of the iExec PoCo seal; the tree lets one tile show that the verifier held the whole state.
type Seal struct {
	state []*canon.Tree // over the tiles of every tensor, as the state root has them
	keyed []*canon.Tree // the same with keyed leaves
	roots *canon.Tree   // over the roots of keyed
}

// NewSeal seals a state, given the tree of every tensor over its tiles. There is a tensor, and no tensor is empty.
func NewSeal(s Subject, state []*canon.Tree) *Seal {
	seal, key := &Seal{state: state}, s.key()
	roots := make([]canon.Digest, len(state))
	for i, t := range state {
		leaves := make([]canon.Digest, t.Len())
		for j := range leaves {
			of, _ := t.Node(0, j) // j is within the tree
			leaves[j] = leaf(key, i, j, of)
		}
		tree := canon.NewTree(leaves)
		seal.keyed = append(seal.keyed, tree)
		roots[i] = tree.Root()
	}
	seal.roots = canon.NewTree(roots)
	return seal
}

// Root is the seal itself, which is published before it is known which tile it must be opened at.
func (s *Seal) Root() canon.Digest { return s.roots.Root() }

// Opening shows one tile of a sealed state: its bytes, its place under the state root that the worker committed to, and
// its keyed digest's place under the seal.
type Opening struct {
	Step    uint32      `cbor:"1,keyasint"` // of the state
	Tensors uint32      `cbor:"2,keyasint"` // of the state
	Tiles   uint32      `cbor:"3,keyasint"` // of the tensor
	Shape   []byte      `cbor:"4,keyasint"` // of the tensor, in its canonical bytes
	Tile    []byte      `cbor:"5,keyasint"`
	Tensor  canon.Proof `cbor:"6,keyasint"` // the tile in its tensor
	State   canon.Proof `cbor:"7,keyasint"` // the tensor in the state
	Keyed   canon.Proof `cbor:"8,keyasint"` // the keyed digest in the seal of its tensor
	Seal    canon.Proof `cbor:"9,keyasint"` // that in the seal
}

// Source is the sealed state, for its opening.
type Source interface {
	// Roots are the roots of the tensors.
	Roots() []canon.Digest
	// Shape is the canonical bytes of the shape of a tensor.
	Shape(tensor int) []byte
	// Tile is the bytes of a tile.
	Tile(tensor, tile int) []byte
	// Step is the number of inner steps that led to the state.
	Step() uint32
}

// Open answers a question about a sealed state.
func (s *Seal) Open(question canon.Digest, of Source) (Opening, error) {
	i := tensorOf(question, len(s.state))
	j := tileOf(question, s.state[i].Len())
	o := Opening{Step: of.Step(), Tensors: uint32(len(s.state)), Tiles: uint32(s.state[i].Len()), Shape: of.Shape(i),
		Tile: of.Tile(i, j)}
	var errs [4]error
	o.Tensor, errs[0] = s.state[i].Proof(j)
	o.Keyed, errs[1] = s.keyed[i].Proof(j)
	o.State, errs[2] = canon.NewTree(of.Roots()).Proof(i)
	o.Seal, errs[3] = s.roots.Proof(i)
	return o, errors.Join(errs[:]...)
}

// Question draws the tile at which a seal must be opened, given the beacon of a block after the one that took the
// seal.
func Question(beacon canon.Digest, s Subject) canon.Digest {
	key := s.key()
	return canon.Sum("starling/seal-question/1", beacon[:], key[:])
}

func tensorOf(question canon.Digest, n int) int { return Pick(question, "tensor", "", 0, 0, 0, n) }
func tileOf(question canon.Digest, n int) int   { return Pick(question, "tile", "", 0, 0, 0, n) }

// RootFuncs computes the roots of tensors and states from those of their trees.
type RootFuncs interface {
	// Tensor is the root of a tensor, given the canonical bytes of its shape and the root over its tiles. A shape that is
	// none, or that has another number of tiles, is an error.
	Tensor(shape []byte, tiles int, tree canon.Digest) (canon.Digest, error)
	// State is the root of the state after a number of inner steps, given the root over its tensors.
	State(step uint32, tensors canon.Digest) canon.Digest
}

// Check reports why an opening does not answer the question about a seal of the state with a committed root. The number
// of tensors and of tiles that decide where the question points are bound by that root.
func (o Opening) Check(s Subject, committed, seal, question canon.Digest, r RootFuncs) error {
	if o.Tensors < 1 || o.Tiles < 1 || o.Tensors > canon.MaxElements || o.Tiles > canon.MaxElements {
		return fmt.Errorf("%w: %d tensors, %d tiles", ErrOpening, o.Tensors, o.Tiles)
	}
	i := tensorOf(question, int(o.Tensors))
	tree, keyed, ok := o.tile(s, i, question)
	if !ok {
		return fmt.Errorf("%w: the proof of the tile has not the form of one", ErrOpening)
	}
	tensor, err := r.Tensor(o.Shape, int(o.Tiles), tree)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOpening, err)
	}
	state, ok := o.State.Root(int(o.Tensors), i, tensor)
	if !ok || r.State(o.Step, state) != committed {
		return fmt.Errorf("%w: the tile of tensor %d is not in the committed state", ErrOpening, i)
	}
	if !o.Seal.Verify(seal, int(o.Tensors), i, keyed) {
		return fmt.Errorf("%w: the tile of tensor %d is not in the seal", ErrOpening, i)
	}
	return nil
}

// tile returns the roots of the two trees over the tiles of a tensor that the shown tile leads to.
func (o Opening) tile(s Subject, i int, question canon.Digest) (tree, keyed canon.Digest, ok bool) {
	n := int(o.Tiles)
	j, of := tileOf(question, n), canon.Leaf(o.Tile)
	if tree, ok = o.Tensor.Root(n, j, of); ok {
		keyed, ok = o.Keyed.Root(n, j, leaf(s.key(), i, j, of))
	}
	return tree, keyed, ok
}

// Encode returns the canonical bytes.
func (o Opening) Encode() []byte { return canon.MustMarshal(o) }

// DecodeOpening reads canonical bytes from any sender. The error wraps ErrOpening.
func DecodeOpening(b []byte) (o Opening, err error) {
	if len(b) > MaxOpening {
		return o, fmt.Errorf("%w: %d bytes, at most %d are taken", ErrOpening, len(b), MaxOpening)
	}
	if err := canon.Unmarshal(b, &o); err != nil {
		return Opening{}, fmt.Errorf("%w: %w", ErrOpening, err)
	}
	return o, nil
}
