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

// Pool holds the bytes of each blob that parties store once: nearly all of them store the same blobs. Bytes that do not
// fit into a part of the memory lie in a file that has no name, and goes with the process. Enter alone deletes bytes.
type Pool struct {
	mu     sync.Mutex
	blobs  map[blob.CID]pooled
	stores []*Store
	held   int64 // bytes in memory
	file   *os.File
	end    int64             // of the file
	free   map[int64][]int64 // parts of the file that were deleted, by size; where each begins
	round  uint32            // of the run
}

// pooled is a blob in memory, or, without data, a part of the file.
type pooled struct {
	data     []byte
	at, size int64
	round    uint32 // in which it was stored for the last time; 0: before the run had one
}

// poolMemory is how many bytes of blobs are kept in memory.
const poolMemory = 64 << 20

// put keeps a blob, if it is not there.
func (p *Pool) put(c blob.CID, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b, ok := p.blobs[c]
	if !ok {
		if p.blobs == nil {
			p.blobs = map[blob.CID]pooled{}
		}
		b.size = int64(len(data))
		if at, ok := p.spill(data); ok {
			b.at = at
		} else {
			b.data = append(make([]byte, 0, len(data)), data...)
			p.held += b.size
		}
	}
	if !ok || b.round > 0 {
		b.round = p.round
	}
	p.blobs[c] = b
}

// spill writes bytes that are too many for the memory to the file, and reports where. Where there is no room for them
// they stay in memory.
func (p *Pool) spill(data []byte) (at int64, ok bool) {
	size := int64(len(data))
	if p.held+size <= poolMemory {
		return 0, false
	}
	if p.file == nil {
		f, err := os.CreateTemp("", "starling-sim-*")
		if err != nil {
			return 0, false
		}
		_ = os.Remove(f.Name()) // what is open needs no name; where it does, it stays
		p.file, p.free = f, map[int64][]int64{}
	}
	gaps := p.free[size]
	if at = p.end; len(gaps) > 0 {
		at = gaps[len(gaps)-1]
	}
	if _, err := p.file.WriteAt(data, at); err != nil {
		return 0, false
	}
	if len(gaps) > 0 {
		p.free[size] = gaps[:len(gaps)-1]
	} else {
		p.end += size
	}
	return at, true
}

// Enter begins a round, and deletes from all stores the blobs that were stored in rounds before the oldest one, for the
// last time. Those that were there before the first round stay.
func (p *Pool) Enter(round, oldest uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round = round
	for c, b := range p.blobs {
		if b.round == 0 || b.round >= oldest {
			continue
		}
		for _, s := range p.stores {
			s.drop(c)
		}
		delete(p.blobs, c)
		if b.data != nil || b.size == 0 {
			p.held -= b.size
		} else {
			p.free[b.size] = append(p.free[b.size], b.at)
		}
	}
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
func New(p *Pool) *Store {
	s := &Store{pool: p, has: map[blob.CID]bool{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stores = append(p.stores, s)
	return s
}

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
	s.drop(c)
	return ctx.Err()
}

func (s *Store) drop(c blob.CID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.has, c)
}
