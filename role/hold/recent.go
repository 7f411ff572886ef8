package hold

import (
	"slices"
	"sync"
)

// Recent holds the values that were used last, by their keys. It may be used concurrently.
type Recent[K comparable, V any] struct {
	Most int // values

	mu   sync.Mutex
	held []entry[K, V] // the one used last at the end
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// Get returns the value of a key, and counts as a use of it.
func (r *Recent[K, V]) Get(key K) (value V, ok bool) {
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

// Each calls do with every value, the one used last at the end. It counts as no use.
func (r *Recent[K, V]) Each(do func(K, V)) {
	r.mu.Lock()
	held := slices.Clone(r.held)
	r.mu.Unlock()
	for _, e := range held {
		do(e.key, e.value)
	}
}

// Clear forgets all values.
func (r *Recent[K, V]) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = nil
}

// Put holds a value, and forgets the one that was not used for the longest time.
func (r *Recent[K, V]) Put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = slices.DeleteFunc(r.held, func(e entry[K, V]) bool { return e.key == key })
	r.held = append(r.held, entry[K, V]{key, value})
	r.held = slices.Delete(r.held, 0, max(0, len(r.held)-r.Most))
}
