package blob

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/multiformats/go-multihash"

	"github.com/starling-network/starling/canon"
)

// Location is where a block of IPFS is in a stored blob: leaf Index if Level is 0, and else inner node Index of that
// level.
type Location struct {
	Root  CID
	Level int
	Index int
}

// Block returns the bytes of the block at a place that a store's Find gave: ErrNotFound if the blob is gone, ErrCorrupt
// as Reader.
func Block(ctx context.Context, s Leaves, at Location) ([]byte, error) {
	r, err := s.Open(ctx, at.Root)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if at.Level == 0 {
		return r.Leaf(nil, at.Index)
	}
	m := r.Manifest()
	var found []byte
	walk(m.Size, m.Leaves, func(_ CID, level, i int, block []byte) {
		if level == at.Level && i == at.Index {
			found = block
		}
	})
	if found == nil {
		return nil, fmt.Errorf("blob: %s has no node %d of level %d: %w", at.Root, at.Index, at.Level, ErrNotFound)
	}
	return found, nil
}

// BlockSize is the number of bytes of the block at a place.
func BlockSize(ctx context.Context, s Leaves, at Location) (int, error) {
	if at.Level > 0 {
		b, err := Block(ctx, s, at)
		return len(b), err
	}
	r, err := s.Open(ctx, at.Root)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	return r.Manifest().LeafSize(at.Index), nil
}

// index finds blocks in the blobs of a store. Blocks are known by their digests: the same bytes are a leaf under one
// CID, and a directory under another.
type index struct {
	mu     sync.Mutex
	blobs  map[CID]*Manifest
	places map[canon.Digest][]Location
}

func newIndex() *index {
	return &index{blobs: map[CID]*Manifest{}, places: map[canon.Digest][]Location{}}
}

// add makes the blocks of a blob known. Adding it again changes nothing.
func (x *index) add(m *Manifest) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.blobs[m.Root] != nil {
		return
	}
	x.blobs[m.Root] = m
	walk(m.Size, m.Leaves, func(c CID, level, i int, _ []byte) {
		d := digestOf(c)
		if p := x.places[d]; len(p) == 0 || p[len(p)-1].Root != m.Root { // equal leaves of a blob have one place
			x.places[d] = append(p, Location{m.Root, level, i})
		}
	})
}

// remove forgets the blocks of a blob.
func (x *index) remove(root CID) {
	x.mu.Lock()
	defer x.mu.Unlock()
	m := x.blobs[root]
	if m == nil {
		return
	}
	delete(x.blobs, root)
	walk(m.Size, m.Leaves, func(c CID, _, _ int, _ []byte) {
		d := digestOf(c)
		x.places[d] = slices.DeleteFunc(x.places[d], func(p Location) bool { return p.Root == root })
		if len(x.places[d]) == 0 {
			delete(x.places, d)
		}
	})
}

// Find implements Store.
func (x *index) Find(block CID) []Location {
	if p := block.Prefix(); p.MhType != multihash.SHA2_256 || p.MhLength != sha256.Size {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.places[digestOf(block)])
}
