package works

import (
	"slices"
	"sync"

	"github.com/starling-network/starling/canon"
)

// remembers is how many works a node remembers at most.
const remembers = 8

// cache has the last works that were opened. What a work is follows from the digest of its specification alone, which
// binds all of its opening: so what is remembered changes nothing but speed.
type cache struct {
	mu   sync.Mutex
	last []opened // the latest last
}

type opened struct {
	spec canon.Digest
	sum  canon.Digest // of the opening
	work Case
}

// find returns a work that is remembered.
func (c *cache) find(spec, sum canon.Digest) (Case, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.last, func(o opened) bool { return o.spec == spec && o.sum == sum })
	if i < 0 {
		return nil, false
	}
	o := c.last[i]
	c.last = append(slices.Delete(c.last, i, i+1), o)
	return o.work, true
}

// add remembers a work, and forgets the one that was asked for longest ago.
func (c *cache) add(o opened) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.last) == remembers {
		c.last = slices.Delete(c.last, 0, 1)
	}
	c.last = append(c.last, o)
}
