package engine

import (
	"slices"
	"sync"
)

// recent holds the values that were used last, by their keys. It may be used concurrently.
type recent[K comparable, V any] struct {
	most int // values

	mu   sync.Mutex
	held []entry[K, V] // the one used last at the end
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// get returns the value of a key, and counts as a use of it.
func (r *recent[K, V]) get(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.held, func(e entry[K, V]) bool { return e.key == key })
	if i < 0 {
		return value, false
	}
	used := r.held[i]
	r.held = append(slices.Delete(r.held, i, i+1), used)
	return used.value, true
}

// clear forgets all values.
func (r *recent[K, V]) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = nil
}

// put holds a value, and forgets the one that was not used for the longest time.
func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = slices.DeleteFunc(r.held, func(e entry[K, V]) bool { return e.key == key })
	r.held = append(r.held, entry[K, V]{key, value})
	r.held = slices.Delete(r.held, 0, max(0, len(r.held)-r.most))
}
