// Package store holds the blobs of all parties of a simulated network, and the bytes of each blob once. It is no store
// of a node: package blob has those.
package store

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/starling-network/starling/network/blob"
)

// Pool holds the bytes of each blob that parties store once: nearly all of them store the same blobs. Nothing is ever
// deleted from it, since what came of a simulation is measured when it is over; so what is more than fits into a part
// of the memory lies in a file that has no name, and goes with the process.
type Pool struct {
	mu    sync.Mutex
	blobs map[blob.CID]pooled
	held  int64 // bytes in memory
	file  *os.File
	end   int64 // of the file
}

// pooled is a blob in memory, or, without data, a part of the file.
type pooled struct {
	data     []byte
	at, size int64
}

// poolMemory is how many bytes of blobs are kept in memory.
const poolMemory = 64 << 20

// put keeps a blob, if it is not there.
func (p *Pool) put(c blob.CID, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.blobs[c]; ok {
		return
	}
	if p.blobs == nil {
		p.blobs = map[blob.CID]pooled{}
	}
	size := int64(len(data))
	if p.held+size > poolMemory && p.spill(data) {
		p.blobs[c] = pooled{at: p.end, size: size}
		p.end += size
		return
	}
	p.held += size
	p.blobs[c] = pooled{data: append(make([]byte, 0, len(data)), data...), size: size}
}

// spill writes bytes to the end of the file, and reports whether they are there. Where there is no room for it they
// stay in memory.
func (p *Pool) spill(data []byte) bool {
	if p.file == nil {
		f, err := os.CreateTemp("", "starling-sim-*")
		if err != nil {
			return false
		}
		_ = os.Remove(f.Name()) // what is open needs no name; where it does, it stays
		p.file = f
	}
	_, err := p.file.WriteAt(data, p.end)
	return err == nil
}

// get returns a copy of a blob.
func (p *Pool) get(c blob.CID) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.blobs[c]
	if !ok {
		return nil, blob.ErrNotFound
	}
	out := make([]byte, b.size)
	if b.data != nil || b.size == 0 {
		copy(out, b.data)
		return out, nil
	}
	_, err := p.file.ReadAt(out, b.at)
	return out, err
}

// Store is what one party has of a pool: a list of names. It survives a crash. It has no leaves or IPFS
// blocks: blobs travel whole here.
type Store struct {
	blob.Store // none
	pool       *Pool

	mu  sync.Mutex
	has map[blob.CID]bool
}

// New returns a store that has nothing of a pool.
func New(p *Pool) *Store { return &Store{pool: p, has: map[blob.CID]bool{}} }

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, data []byte) (blob.CID, error) {
	if err := ctx.Err(); err != nil {
		return blob.CID{}, err
	}
	c := blob.Of(data)
	s.pool.put(c, data)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has[c] = true
	return c, nil
}

// Get implements blob.Store.
func (s *Store) Get(ctx context.Context, c blob.CID) ([]byte, error) {
	if ok, err := s.Has(ctx, c); err != nil || !ok {
		return nil, fmt.Errorf("sim: %s: %w", c, cmp.Or(err, blob.ErrNotFound))
	}
	return s.pool.get(c)
}

// Has implements blob.Store.
func (s *Store) Has(ctx context.Context, c blob.CID) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has[c], ctx.Err()
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, c blob.CID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.has, c)
	return ctx.Err()
}
