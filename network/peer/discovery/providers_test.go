package discovery

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/peer/admission"
)

// TestStrangersCannotFillTheHashTable has strangers and a registered peer announce more blobs than a host keeps records
// of: it keeps none of theirs, no more than its share of its own, and those of others.
func TestStrangersCannotFillTheHashTable(t *testing.T) {
	now := time.Unix(0, 0)
	p := newProviders("self", func(id peer.ID) admission.Standing {
		if id[0] == 's' {
			return admission.Stranger
		}
		return admission.Participant
	})
	p.now = func() time.Time { return now }
	announce := func(id peer.ID, blob string) { _ = p.AddProvider(t.Context(), []byte(blob), peer.AddrInfo{ID: id}) }
	has := func(blob string) int { list, _ := p.GetProviders(t.Context(), []byte(blob)); return len(list) }
	announce("self", "own")
	announce("honest", "checkpoint")
	for i := range 3 * providersEach {
		now = now.Add(time.Millisecond)
		announce("stranger", fmt.Sprint("s", i))
		announce("greedy", fmt.Sprint("g", i))
	}
	if p.count["stranger"] != 0 || p.count["greedy"] != providersEach || p.total != providersEach+2 {
		t.Errorf("records of a stranger %d, of a participant %d, in all %d", p.count["stranger"], p.count["greedy"], p.total)
	}
	for who := range 8 {
		for i := range providersEach {
			now = now.Add(time.Millisecond)
			announce(peer.ID(fmt.Sprint("greedy", who)), fmt.Sprint(who, " ", i))
		}
	}
	if p.total > providersMost || has("checkpoint") != 1 || has("own") != 1 {
		t.Errorf("%d records in all, %d of the checkpoint, %d of its own", p.total, has("checkpoint"), has("own"))
	}
	for i := range 2 * providersOf {
		announce(peer.ID(fmt.Sprint("crowd", i)), "popular")
	}
	if n := has("popular"); n != providersOf {
		t.Errorf("%d records of one blob", n)
	}
	now = now.Add(providerTime)
	if has("checkpoint") != 0 {
		t.Error("a record outlives its time")
	}
}
