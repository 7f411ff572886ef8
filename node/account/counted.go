package account

import (
	"context"
	"sync/atomic"

	"github.com/starling-network/starling/network/blob"
)

// counted is a store that counts the bytes that are read from it leaf by leaf, and those that are written into it.
type counted struct {
	blob.Store
	read, written atomic.Uint64
}

// Open implements blob.Store.
func (s *counted) Open(ctx context.Context, c blob.CID) (blob.Reader, error) {
	r, err := s.Store.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return countedReader{r, &s.read}, nil
}

// Put implements blob.Store.
func (s *counted) Put(ctx context.Context, data []byte) (blob.CID, error) {
	s.written.Add(uint64(len(data)))
	return s.Store.Put(ctx, data)
}

// Assemble implements blob.Store.
func (s *counted) Assemble(ctx context.Context, m *blob.Manifest) (blob.Assembly, error) {
	a, err := s.Store.Assemble(ctx, m)
	if err != nil {
		return nil, err
	}
	return countedAssembly{a, &s.written}, nil
}

type countedReader struct {
	blob.Reader
	read *atomic.Uint64
}

// Leaf implements blob.Reader.
func (r countedReader) Leaf(dst []byte, i int) ([]byte, error) {
	before := len(dst)
	dst, err := r.Reader.Leaf(dst, i)
	r.read.Add(uint64(max(0, len(dst)-before)))
	return dst, err
}

type countedAssembly struct {
	blob.Assembly
	written *atomic.Uint64
}

// Put implements blob.Assembly.
func (a countedAssembly) Put(i int, leaf []byte) error {
	a.written.Add(uint64(len(leaf)))
	return a.Assembly.Put(i, leaf)
}
