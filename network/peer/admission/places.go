package admission

import (
	"sync"

	"github.com/libp2p/go-libp2p/core/peer"
)

// Places are the streams of one protocol that peers have open here at the same time.
type Places struct {
	each, all int

	mu    sync.Mutex
	total int
	taken map[peer.ID]int
}

// NewPlaces returns places for a number of streams of each peer, and for another number of all peers together.
func NewPlaces(each, all int) *Places { return &Places{each: each, all: all, taken: map[peer.ID]int{}} }

// Take takes a place for a stream of a peer; false: none is left.
func (p *Places) Take(id peer.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken[id] == p.each || p.total == p.all {
		return false
	}
	p.taken[id]++
	p.total++
	return true
}

// Free gives a place back that Take took.
func (p *Places) Free(id peer.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total--
	if p.taken[id]--; p.taken[id] == 0 {
		delete(p.taken, id)
	}
}
