package blob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Memory is a Store in memory, gone with the process.
type Memory struct {
	*index
	mu    sync.Mutex
	blobs map[CID]memoryBlob
	open  map[CID]bool // being assembled
}

type memoryBlob struct {
	manifest *Manifest
	data     []byte // never modified
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{index: newIndex(), blobs: map[CID]memoryBlob{}, open: map[CID]bool{}}
}

// Put implements Store.
func (s *Memory) Put(ctx context.Context, data []byte) (CID, error) {
	if err := checkPut(ctx, data); err != nil {
		return CID{}, err
	}
	m := Describe(data)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.blobs[m.Root]; !ok {
		s.blobs[m.Root] = memoryBlob{m, slices.Clone(data)}
		s.add(m)
	}
	return m.Root, nil
}

// Get implements Store.
func (s *Memory) Get(ctx context.Context, c CID) ([]byte, error) {
	b, err := s.find(ctx, c)
	return slices.Clone(b.data), err
}

// Has implements Store.
func (s *Memory) Has(ctx context.Context, c CID) (bool, error) {
	if err := checkUse(ctx, c); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.blobs[c]
	return ok, nil
}

// Delete implements Store.
func (s *Memory) Delete(ctx context.Context, c CID) error {
	if err := checkUse(ctx, c); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, c)
	s.remove(c)
	return nil
}

// List implements Store.
func (s *Memory) List(ctx context.Context) ([]CID, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]CID, 0, len(s.blobs))
	for c := range s.blobs {
		list = append(list, c)
	}
	slices.SortFunc(list, compare)
	return list, ctx.Err()
}

// Open implements Store.
func (s *Memory) Open(ctx context.Context, c CID) (Reader, error) {
	b, err := s.find(ctx, c)
	if err != nil {
		return nil, err
	}
	return memoryReader{b}, nil
}

func (s *Memory) find(ctx context.Context, c CID) (memoryBlob, error) {
	if err := checkUse(ctx, c); err != nil {
		return memoryBlob{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.blobs[c]
	if !ok {
		return memoryBlob{}, fmt.Errorf("blob: %s: %w", c, ErrNotFound)
	}
	return b, nil
}

type memoryReader struct{ blob memoryBlob }

func (r memoryReader) Manifest() *Manifest { return r.blob.manifest }
func (r memoryReader) Close() error        { return nil }

func (r memoryReader) Leaf(dst []byte, i int) ([]byte, error) {
	m := r.blob.manifest
	if err := checkLeaf(m, i); err != nil {
		return nil, err
	}
	lo := i * LeafBytes
	return append(dst, r.blob.data[lo:lo+m.LeafSize(i)]...), nil
}

// Assemble implements Store.
func (s *Memory) Assemble(ctx context.Context, m *Manifest) (Assembly, error) {
	if err := checkAssemble(ctx, m); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[m.Root] {
		return nil, fmt.Errorf("blob: %s: %w", m.Root, ErrBusy)
	}
	s.open[m.Root] = true
	return &memoryAssembly{progress: newProgress(m), store: s, data: make([]byte, m.Size)}, nil
}

type memoryAssembly struct {
	*progress
	store *Memory
	data  []byte
}

func (a *memoryAssembly) Put(i int, leaf []byte) error {
	return a.put(i, leaf, func() error {
		copy(a.data[i*LeafBytes:], leaf)
		return nil
	})
}

func (a *memoryAssembly) Commit(ctx context.Context) error {
	if err := a.complete(ctx); err != nil {
		return err
	}
	a.store.mu.Lock()
	defer a.store.mu.Unlock()
	a.store.blobs[a.manifest.Root] = memoryBlob{a.manifest, a.data}
	a.store.add(a.manifest)
	return nil
}

func (a *memoryAssembly) Close() error {
	if a.close() {
		a.store.mu.Lock()
		defer a.store.mu.Unlock()
		delete(a.store.open, a.manifest.Root)
	}
	return nil
}

func compare(a, b CID) int { return strings.Compare(a.String(), b.String()) }
