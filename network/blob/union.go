package blob

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Union reads the blobs of several stores as one: what a host serves whose owner keeps the blobs of each job in a store
// of its own. It keeps no blob itself: Put and Assemble fail with ErrFull, and Delete does nothing.
type Union struct {
	mu     sync.Mutex
	stores []Store
}

var _ Store = (*Union)(nil)

// Add has the blobs of a store read, too, until remove.
func (s *Union) Add(store Store) (remove func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stores = append(s.stores, store)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if i := slices.Index(s.stores, store); i >= 0 {
			s.stores = slices.Delete(slices.Clone(s.stores), i, i+1)
		}
	})
}

func (s *Union) all() []Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.stores)
}

// firstOf is the first success of the stores, or the last error: ErrNotFound where there is no store.
func firstOf[T any](s *Union, c CID, ask func(Store) (T, error)) (found T, err error) {
	err = fmt.Errorf("blob: %s: %w", c, ErrNotFound)
	for _, store := range s.all() {
		if found, err = ask(store); err == nil {
			return found, nil
		}
	}
	return found, err
}

// Get implements Store.
func (s *Union) Get(ctx context.Context, c CID) ([]byte, error) {
	return firstOf(s, c, func(store Store) ([]byte, error) { return store.Get(ctx, c) })
}

// Open implements Store.
func (s *Union) Open(ctx context.Context, c CID) (Reader, error) {
	return firstOf(s, c, func(store Store) (Reader, error) { return store.Open(ctx, c) })
}

// Has implements Store.
func (s *Union) Has(ctx context.Context, c CID) (bool, error) {
	for _, store := range s.all() {
		if has, err := store.Has(ctx, c); has || err != nil {
			return has, err
		}
	}
	return false, nil
}

// List implements Store.
func (s *Union) List(ctx context.Context) (list []CID, err error) {
	for _, store := range s.all() {
		part, err := store.List(ctx)
		if err != nil {
			return nil, err
		}
		list = append(list, part...)
	}
	slices.SortFunc(list, func(a, b CID) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(list), nil
}

// Find implements Store.
func (s *Union) Find(block CID) (places []Location) {
	for _, store := range s.all() {
		for _, at := range store.Find(block) {
			if !slices.ContainsFunc(places, func(l Location) bool { return l.Root == at.Root }) {
				places = append(places, at)
			}
		}
	}
	return places
}

// Put implements Store.
func (s *Union) Put(context.Context, []byte) (CID, error) {
	return CID{}, fmt.Errorf("blob: a union keeps nothing: %w", ErrFull)
}

// Assemble implements Store.
func (s *Union) Assemble(context.Context, *Manifest) (Assembly, error) {
	return nil, fmt.Errorf("blob: a union keeps nothing: %w", ErrFull)
}

// Delete implements Store.
func (s *Union) Delete(context.Context, CID) error { return nil }
