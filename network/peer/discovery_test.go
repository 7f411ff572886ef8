package peer

import (
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/peer/discovery"
	"github.com/starling-network/starling/network/peer/wire"
)

// joined starts hosts that all know the first of them, and have met it.
func joined(t *testing.T, n int) []*Host {
	t.Helper()
	hosts := []*Host{start(t, Config{Known: func() []string { return nil }})}
	for range n - 1 {
		h := start(t, Config{Known: hosts[0].Addrs})
		if err := h.Connect(t.Context(), hosts[0].Addrs()[0]); err != nil {
			t.Fatal(err)
		}
		meet(t, h)
		hosts = append(hosts, h)
	}
	for _, h := range hosts {
		meet(t, h)
	}
	return hosts
}

// meet waits until a host has found a neighbour in the table, and looked for more.
func meet(t *testing.T, h *Host) {
	t.Helper()
	for {
		err := <-h.table.ForceRefresh()
		if h.table.RoutingTable().Size() > 0 {
			return
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// identifies returns a function that waits until a host has been told the addresses of another since, which happens
// after a connection is made.
func identifies(t *testing.T, h *Host, other ID) (wait func()) {
	t.Helper()
	sub, err := h.host.EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted))
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		defer func() { _ = sub.Close() }()
		for {
			select {
			case e := <-sub.Out():
				if e.(event.EvtPeerIdentificationCompleted).Peer == other {
					return
				}
			case <-t.Context().Done():
				t.Fatal("not identified")
			}
		}
	}
}

// TestStaleAddress moves a peer to another port: who knows only the old one finds it by its ID.
func TestStaleAddress(t *testing.T) {
	t.Parallel()
	hosts := joined(t, 4)
	key := KeyFromSeed([32]byte{7})
	old := start(t, Config{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}}) // where a dial is refused at once
	stale := old.Addrs()
	stop(t, old)
	data := blobtest.Data(40, 10)
	identified := identifies(t, hosts[0], old.ID())
	moved := start(t, Config{Key: key, Known: hosts[0].Addrs})
	put(t, moved, data)
	if err := moved.Connect(t.Context(), hosts[0].Addrs()[0]); err != nil {
		t.Fatal(err)
	}
	identified()
	meet(t, moved)
	wantFetch(t, hosts[3], data, stale)
	if _, err := start(t, Config{}).Fetch(t.Context(), blob.Of(data), stale); err == nil {
		t.Error("the old address still works")
	}
}

// TestProviders fetches a blob that the named holders do not have from one that announced it.
func TestProviders(t *testing.T) {
	t.Parallel()
	hosts := joined(t, 5)
	data := blobtest.Data(41, 2*blob.LeafBytes)
	c := put(t, hosts[1], data)
	if err := hosts[1].Announce(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	wantFetch(t, hosts[4], data, addrs(hosts[2]))
	_, err := hosts[4].Fetch(t.Context(), blob.Of([]byte("nobody's")), addrs(hosts[2]))
	if !errors.Is(err, wire.ErrNotFound) {
		t.Errorf("Fetch of what nobody has: %v", err)
	}
	alone := start(t, Config{})
	if err := alone.Announce(t.Context(), c); !errors.Is(err, discovery.ErrNoDiscovery) {
		t.Errorf("Announce: %v", err)
	}
	if _, err := alone.Providers(t.Context(), c); !errors.Is(err, discovery.ErrNoDiscovery) {
		t.Errorf("Providers: %v", err)
	}
}

// TestAnnounced fetches a blob by its CID alone: the host that has it keeps it announced, and the one that wants it
// knows one peer, which has not got it.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	hosts := joined(t, 5)
	data := blobtest.Data(42, 2*blob.LeafBytes)
	c := put(t, hosts[1], data)
	if err := discovery.NewAnnouncer(hosts[1].Announce).Announce(t.Context(), []blob.CID{c}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	newcomer := start(t, Config{Known: hosts[0].Addrs})
	meet(t, newcomer)
	wantFetch(t, newcomer, data, nil)
}
