package works

import (
	"slices"
	"sync"

	"github.com/starling-network/starling/canon"
)

// remembers is the number of works that a node keeps in memory.
const remembers = 8

// cache holds the works that were opened last. The digest of a specification determines a work and its opening, so the
// cache affects only speed.
type cache struct {
	mu   sync.Mutex
	last []opened // the latest last
}

type opened struct {
	spec canon.Digest
	sum  canon.Digest // of the opening

	numerics uint32 // with which the referee was asked
	work     Case
}

// find returns a cached work of a version of the numerics; 0: of any.
func (c *cache) find(spec, sum canon.Digest, numerics uint32) (Case, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.last, func(o opened) bool {
		return o.spec == spec && o.sum == sum && (numerics == 0 || o.numerics == numerics)
	})
	if i < 0 {
		return nil, false
	}
	o := c.last[i]
	c.last = append(slices.Delete(c.last, i, i+1), o)
	return o.work, true
}

// add caches a work and removes the least recently used one if the cache is full.
func (c *cache) add(o opened) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) == remembers {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, o)
}
