package admission

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
)

// A peer has no more places than its own, all peers have no more than there are, and a place that is given back is
// there for another stream.
func TestPlaces(t *testing.T) {
	p := NewPlaces(2, 3)
	for i, c := range []struct {
		peer  peer.ID
		taken bool
	}{{"a", true}, {"a", true}, {"a", false}, {"b", true}, {"b", false}, {"c", false}} {
		if p.Take(c.peer) != c.taken {
			t.Errorf("stream %d of peer %s: taken is not %t", i, string(c.peer), c.taken)
		}
	}
	p.Free("a")
	if !p.Take("c") || p.Take("a") {
		t.Error("a place that was given back is not that of the next stream")
	}
	for _, id := range []peer.ID{"a", "b", "c"} {
		p.Free(id)
	}
	if len(p.taken) != 0 || p.total != 0 {
		t.Errorf("all places were given back, and %v are taken", p.taken)
	}
}
