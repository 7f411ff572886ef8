// Package blob is the content-addressed store: bytes in, a CID out, and the same bytes for that CID ever after.
//
// A blob is a UnixFS file in the layout of Manifest, so its CID is the one that IPFS gives the same bytes
// (`ipfs add --cid-version=1 --raw-leaves --chunker=size-1048576 --max-file-links=1024`) and any IPFS node can verify
// it. A blob is whole or absent: nothing here shows half of one.
//
// The package moves no bytes between machines (network/peer and network/ipfs do), gives blobs no names and no meaning,
// and does not know which of them are needed (callers of network/blob/quota say so).
package blob

import (
	"context"
	"errors"
	"fmt"

	"github.com/ipfs/go-cid"
	"github.com/multiformats/go-multihash"

	"github.com/starling-network/starling/canon"
)

// CID names a blob by its content: version 1, SHA-256, codec raw (one leaf) or dag-pb (more).
type CID = cid.Cid

// Errors of every store. They come wrapped with the CID they are about.
var (
	ErrNotFound   = errors.New("blob not found")
	ErrCorrupt    = errors.New("bytes do not match their digest")
	ErrBadCID     = errors.New("not the CID of a blob: need version 1, SHA-256, codec raw or dag-pb")
	ErrTooLarge   = fmt.Errorf("blob larger than %d bytes", int64(MaxBytes))
	ErrBusy       = errors.New("blob is already being assembled")
	ErrIncomplete = errors.New("leaves are missing")
	ErrFull       = errors.New("no room for the blob")
)

// Store keeps blobs. All methods may be called concurrently and are idempotent. Package blobtest holds the conformance
// suite of every implementation.
type Store interface {
	// Put stores data and returns Of(data). When it returns, the blob survives the death of the process. Data is not
	// retained. Putting a blob that is stored but damaged repairs it. ErrFull if there is no room.
	Put(ctx context.Context, data []byte) (CID, error)
	// Get returns the whole blob, which then belongs to the caller: ErrNotFound if it is absent, ErrCorrupt if the
	// stored bytes have changed. The first read that finds a changed byte makes the blob absent.
	Get(ctx context.Context, c CID) ([]byte, error)
	// Has reports whether the blob is stored, without reading it.
	Has(ctx context.Context, c CID) (bool, error)
	// Delete forgets the blob and what an unfinished Assemble left of it. Deleting an absent blob is not an error.
	Delete(ctx context.Context, c CID) error
	// List returns the stored blobs, sorted by their text form.
	List(ctx context.Context) ([]CID, error)
	// Find returns the places of an IPFS block, leaf or inner node, in the stored blobs; one place in each blob. The
	// digest of the block says which it is, whatever the codec.
	Find(block CID) []Location
	Leaves
}

// Leaves is how a store gives and takes a blob piece by piece: what a transfer needs to serve ranges without reading
// the whole, to verify while streaming and to resume.
type Leaves interface {
	// Open reads a stored blob leaf by leaf; errors as Get.
	Open(ctx context.Context, c CID) (Reader, error)
	// Assemble takes a blob of two leaves or more in any order. A durable store returns with the leaves that an
	// unfinished assembly left, or that are whole in a blob that was found damaged. ErrBusy while another assembly of the
	// same blob is open.
	Assemble(ctx context.Context, m *Manifest) (Assembly, error)
}

// Reader reads one stored blob. It may be used by one goroutine at a time.
type Reader interface {
	Manifest() *Manifest
	// Leaf appends leaf i to dst: ErrCorrupt if the stored bytes are not the leaf any more.
	Leaf(dst []byte, i int) ([]byte, error)
	Close() error
}

// Assembly is a blob that is being put together. Put may be called concurrently.
type Assembly interface {
	// Missing returns the leaves still needed, ascending.
	Missing() []int
	// Put adds leaf i, which is not retained: ErrCorrupt if it is not that leaf, and then nothing is kept; ErrFull if
	// there is no room.
	Put(i int, leaf []byte) error
	// Commit makes the complete blob visible, as durably as Store.Put does: ErrIncomplete if leaves are missing.
	Commit(ctx context.Context) error
	// Close ends the assembly. Without Commit before it, a durable store keeps the leaves for the next Assemble.
	Close() error
}

// Check reports whether c can name a blob at all (ErrBadCID). Every CID that a stranger sends goes through it.
func Check(c CID) error {
	if !c.Defined() {
		return fmt.Errorf("blob: no CID: %w", ErrBadCID)
	}
	p := c.Prefix()
	if p.Version != 1 || (p.Codec != cid.Raw && p.Codec != cid.DagProtobuf) || p.MhType != multihash.SHA2_256 ||
		p.MhLength != 32 {
		return fmt.Errorf("blob: %s: %w", c, ErrBadCID)
	}
	return nil
}

// Parse reads the text form of a blob's CID.
func Parse(s string) (CID, error) {
	if len(s) > 128 {
		return CID{}, fmt.Errorf("blob: CID of %d characters: %w", len(s), ErrBadCID)
	}
	c, err := cid.Decode(s)
	if err != nil {
		return CID{}, fmt.Errorf("blob: %q: %w: %w", s, ErrBadCID, err)
	}
	return c, Check(c)
}

// FromBytes reads the binary form of a blob's CID.
func FromBytes(b []byte) (CID, error) {
	c, err := cid.Cast(b)
	if err != nil {
		return CID{}, fmt.Errorf("blob: %w: %w", ErrBadCID, err)
	}
	return c, Check(c)
}

// digestOf is the digest in a CID that passes Check, or that of a block of a blob.
func digestOf(c CID) canon.Digest { return canon.Digest(c.Hash()[2:]) }

// LeafOf is the CID of the blob of one leaf whose bytes have this SHA-256 digest.
func LeafOf(d canon.Digest) CID {
	h, err := multihash.Encode(d[:], multihash.SHA2_256)
	if err != nil {
		panic(err) // 32 bytes and a known function
	}
	return cid.NewCidV1(cid.Raw, h)
}

// IsLeaf reports whether c names a blob of one leaf, which needs no manifest: its CID is the digest of its bytes.
func IsLeaf(c CID) bool { return c.Prefix().Codec == cid.Raw }

// CheckLeaf reports whether data is the one-leaf blob c (ErrCorrupt).
func CheckLeaf(c CID, data []byte) error {
	if len(data) > LeafBytes || !LeafOf(digest(data)).Equals(c) {
		return fmt.Errorf("blob: %s: %w", c, ErrCorrupt)
	}
	return nil
}
