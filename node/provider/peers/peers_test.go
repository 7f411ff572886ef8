package peers

import (
	"context"
	"errors"
	"testing"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/wire"
	"github.com/starling-network/starling/protocol/registry"
)

// listed are the participants of a network without a chain.
type listed []registry.Participant

func (l *listed) Participants(context.Context) ([]registry.Participant, error) { return *l, nil }

// TestStrangersAreGivenNothingOfARun has a member of a run, a registered account and a stranger ask a worker for a blob
// of the run, the first before the last.
func TestStrangersAreGivenNothingOfARun(t *testing.T) {
	chain := new(listed)
	d := New(chain)
	works := func(account string) bool { return account == "member" }
	var hosts []*peer.Host
	store := blob.NewMemory()
	for n := range 4 {
		c := peer.Config{Key: peer.KeyFromSeed([32]byte{byte(n + 1)}), Store: blob.NewMemory()}
		if n == 0 {
			c.Store, c.Serve = store, ToRegistered
			c.Standing = func(id peer.ID) admission.Standing { return d.Standing(id, works) }
		}
		h, err := peer.New(c)
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		hosts = append(hosts, h)
	}
	*chain = []registry.Participant{{ID: "watcher", PeerID: hosts[1].ID().String()},
		{ID: "member", PeerID: hosts[2].ID().String()}}
	id, err := store.Put(t.Context(), []byte("an update"))
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]admission.Standing{1: admission.Participant, 2: admission.Member, 3: admission.Stranger} {
		if got := d.Standing(hosts[n].ID(), works); got != want {
			t.Errorf("peer %d has standing %d, want %d", n, got, want)
		}
		_, err := hosts[n].Fetch(t.Context(), id, hosts[0].Addrs())
		if given := err == nil; given != (want != admission.Stranger) || err != nil && !errors.Is(err, wire.ErrNotFound) {
			t.Errorf("peer %d: %v", n, err)
		}
	}
}
