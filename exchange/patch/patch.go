// Package patch is the lossless difference of two versions of weights: the elements that have changed, by how much, in
// few bytes. A receiver that has the version before makes the version after from it, bit for bit. A patch is a head,
// which names both versions by their roots and lists pieces by their digests, and the pieces, each of which is sent and
// verified by itself. The bytes of a patch are a function of the two versions.
//
// It moves no bytes, and does not know which versions are right: the caller compares the root of the result with one
// that it trusts.
package patch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"

	"github.com/klauspost/compress/zstd"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/tensor"
)

// Limits of a patch.
const (
	MaxPieces     = 1 << 14
	MaxPieceBytes = 1 << 20 // of a piece, also when it is unpacked
	MaxHeadBytes  = 1 << 20
)

// format is the version of the bytes.
const format = 1

// overread is the room beyond the content that the decoder of a piece asks for.
const overread = 64

var (
	// ErrHead is wrapped by every reason why bytes are not the head of a patch.
	ErrHead = errors.New("not the head of a patch")
	// ErrPiece is wrapped by every reason why bytes are not the piece of a patch that they should be.
	ErrPiece = errors.New("not this piece of the patch")
	// ErrVersion says that a patch does not begin with the version that it is applied to.
	ErrVersion = errors.New("the patch begins with another version")
	// ErrWeights says that weights have no patch: those of two versions differ in their shapes, are no float32, or have no
	// elements.
	ErrWeights = errors.New("weights without a patch")
)

// Name names a version of weights.
type Name struct {
	Round uint32       `cbor:"1,keyasint"` // of the checkpoint
	Root  canon.Digest `cbor:"2,keyasint"`
}

// Version is a version of weights: float32 tensors, which are not changed.
type Version struct {
	Name    Name
	Tensors []*tensor.Tensor
}

// Head is the part of a patch that is fetched before its pieces.
type Head struct {
	Format   uint32  `cbor:"1,keyasint"`
	From     Name    `cbor:"2,keyasint"`
	To       Name    `cbor:"3,keyasint"`
	Elements uint64  `cbor:"4,keyasint"` // of all tensors
	Pieces   []Piece `cbor:"5,keyasint"` // in the order of the elements
}

// Piece is a piece of a patch.
type Piece struct {
	Sum   canon.Digest `cbor:"1,keyasint"` // SHA-256 of its bytes
	Bytes uint32       `cbor:"2,keyasint"`
}

// Bytes is the size of all pieces.
func (h *Head) Bytes() (n int64) {
	for _, p := range h.Pieces {
		n += int64(p.Bytes)
	}
	return n
}

// Encode returns the canonical bytes.
func (h *Head) Encode() []byte { return canon.MustMarshal(h) }

// Decode reads the head of a patch of a stranger. The errors wrap ErrHead.
func Decode(data []byte) (*Head, error) {
	if len(data) > MaxHeadBytes {
		return nil, fmt.Errorf("patch: %w: %d bytes, more than %d", ErrHead, len(data), MaxHeadBytes)
	}
	h := new(Head)
	if err := canon.Unmarshal(data, h); err != nil {
		return nil, fmt.Errorf("patch: %w: %w", ErrHead, err)
	}
	if h.Format != format || len(h.Pieces) == 0 || len(h.Pieces) > MaxPieces {
		return nil, fmt.Errorf("patch: %w: format %d, %d pieces", ErrHead, h.Format, len(h.Pieces))
	}
	for i, p := range h.Pieces {
		if p.Bytes == 0 || p.Bytes > MaxPieceBytes {
			return nil, fmt.Errorf("patch: %w: piece %d has %d bytes", ErrHead, i, p.Bytes)
		}
	}
	return h, nil
}

// Make makes the patch between two versions, and gives put its pieces in order. ErrWeights if there is none.
func Make(from, to Version, put func(piece []byte) error) (*Head, error) {
	if len(from.Tensors) != len(to.Tensors) {
		return nil, fmt.Errorf("patch: %w: %d tensors and %d", ErrWeights, len(from.Tensors), len(to.Tensors))
	}
	pack, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithEncoderLevel(zstd.SpeedBetterCompression))
	if err != nil {
		return nil, err
	}
	defer pack.Close()
	h := &Head{Format: format, From: from.Name, To: to.Name}
	w := &writer{flush: func(raw []byte) error {
		if len(h.Pieces) == MaxPieces {
			return fmt.Errorf("patch: %w: more than %d pieces", ErrWeights, MaxPieces)
		}
		piece := pack.EncodeAll(raw, nil)
		h.Pieces = append(h.Pieces, Piece{sha256.Sum256(piece), uint32(len(piece))})
		return put(piece)
	}}
	for i, a := range from.Tensors {
		b := to.Tensors[i]
		if !a.Shape.Equal(b.Shape) || a.Shape.DType != tensor.Float32 {
			return nil, fmt.Errorf("patch: %w: tensor %d is %v and %v", ErrWeights, i, a.Shape, b.Shape)
		}
		if err := w.tensor(a.F32(), b.F32()); err != nil {
			return nil, err
		}
		a.Rest()
		b.Rest()
	}
	h.Elements = w.first + uint64(w.elements)
	if h.Elements == 0 {
		return nil, fmt.Errorf("patch: %w: no elements", ErrWeights)
	}
	return h, w.end()
}

// Apply makes the version after from the version before, in new tensors, as lay returns them; nil: as they are made.
// get returns the bytes of a piece. The caller verifies the root of the result.
func (h *Head) Apply(before Version, get func(i int) ([]byte, error),
	lay func(*tensor.Tensor) *tensor.Tensor) ([]*tensor.Tensor, error) {
	elements := uint64(0)
	for i, t := range before.Tensors {
		if t.Shape.DType != tensor.Float32 {
			return nil, fmt.Errorf("patch: %w: tensor %d is %v", ErrWeights, i, t.Shape)
		}
		elements += uint64(t.Shape.Elements())
	}
	if before.Name != h.From || elements != h.Elements {
		return nil, fmt.Errorf("patch: %w: version %d (%s) of %d elements, and not %d (%s) of %d", ErrVersion, h.From.Round,
			h.From.Root.Short(), h.Elements, before.Name.Round, before.Name.Root.Short(), elements)
	}
	unpack, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxPieceBytes),
		zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer unpack.Close()
	room := make([]byte, 0, MaxPieceBytes+overread)
	r := &reader{next: func(i int) ([]byte, error) { return h.unpack(unpack, room, i, get) }, pieces: len(h.Pieces)}
	after := make([]*tensor.Tensor, len(before.Tensors))
	for i, t := range before.Tensors {
		made := tensor.New(t.Shape)
		if err := r.tensor(t.F32(), made.F32()); err != nil {
			return nil, err
		}
		t.Rest()
		if after[i] = made; lay != nil {
			after[i] = lay(made)
		}
	}
	return after, r.end()
}

// unpack is the content of a piece, in room, which grows for no piece.
func (h *Head) unpack(unpack *zstd.Decoder, room []byte, i int, get func(i int) ([]byte, error)) ([]byte, error) {
	piece, err := get(i)
	if err != nil {
		return nil, err
	}
	if want := h.Pieces[i]; len(piece) != int(want.Bytes) || sha256.Sum256(piece) != want.Sum {
		return nil, fmt.Errorf("patch: piece %d of %d: %w: %d bytes of %d, or another digest", i, len(h.Pieces), ErrPiece,
			len(piece), want.Bytes)
	}
	raw, err := unpack.DecodeAll(piece, room)
	if err != nil {
		return nil, fmt.Errorf("patch: piece %d of %d: %w: %w", i, len(h.Pieces), ErrPiece, err)
	}
	return raw, nil
}

// Narrow rounds weights to bfloat16, the nearest and else the even one: float32 tensors whose 16 lower bits are 0. A
// patch between two such versions has 16 bits for a changed element.
func Narrow(list []*tensor.Tensor) []*tensor.Tensor {
	out := make([]*tensor.Tensor, len(list))
	for i, t := range list {
		out[i] = tensor.New(t.Shape)
		to := out[i].F32()
		for k, x := range t.F32() {
			u := bitsOf(x)
			if u&infinity != infinity {
				u += 0x7fff + u>>16&1
			}
			to[k] = math.Float32frombits(u &^ 0xffff)
		}
	}
	return out
}
