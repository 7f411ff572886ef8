// Package spare keeps compiled operators for the next trace, up to an amount of memory: a dispute traces a step once
// for each question, and an operator of a small program takes longer to compile than to compute. An operator is in one
// trace at a time: it is taken out, and put back. The package does not compile or compute.
package spare

import "sync"

const (
	most = 32 << 20 // bytes of all that is kept, about
	each = 8 << 10  // bytes of a thing besides its memory
)

// Spares are things by number. The zero value has none.
type Spares[T any] struct {
	mu    sync.Mutex
	known map[int]spare[T]
	bytes int
}

type spare[T any] struct {
	thing T
	bytes int
}

// Take removes and returns the thing of a number, if it is there.
func (s *Spares[T]) Take(i int) (thing T, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.known[i]
	if ok {
		delete(s.known, i)
		s.bytes -= x.bytes
	}
	return x.thing, ok
}

// Put keeps a thing under a number, if nothing is kept under it and the bytes of memory of the thing leave room.
func (s *Spares[T]) Put(i int, thing T, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	bytes += each
	if _, ok := s.known[i]; ok || s.bytes+bytes > most {
		return
	}
	if s.known == nil {
		s.known = map[int]spare[T]{}
	}
	s.known[i], s.bytes = spare[T]{thing, bytes}, s.bytes+bytes
}
