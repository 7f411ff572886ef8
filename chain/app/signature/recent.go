package signature

import "sync"

// generation is how many keys are remembered before those of the generation before them are forgotten: more than the
// pool of transactions holds.
const generation = 1 << 13

// recent is a map of the keys that were put last, of one generation to two. It may be used by many at once.
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
