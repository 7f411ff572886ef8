package signature

import "sync"

// generation is the number of entries in one generation: more than the pool of transactions holds. A new generation
// replaces the one before the last.
const generation = 1 << 13

// recent is a map of the latest entries, of one to two generations. It is safe for concurrent use.
type recent[K comparable, V any] struct {
	mu          sync.Mutex
	now, before map[K]V
}

func (r *recent[K, V]) get(k K) (v V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v, ok = r.now[k]; !ok {
		v, ok = r.before[k]
	}
	return v, ok
}

func (r *recent[K, V]) put(k K, v V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil || len(r.now) >= generation {
		r.now, r.before = map[K]V{}, r.now
	}
	r.now[k] = v
}
