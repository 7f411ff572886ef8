package peer

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
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
		err := <-h.dht.ForceRefresh()
		if h.dht.RoutingTable().Size() > 0 {
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
	hosts := joined(t, 5)
	data := blobtest.Data(41, 2*blob.LeafBytes)
	c := put(t, hosts[1], data)
	if err := hosts[1].Announce(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	wantFetch(t, hosts[4], data, addrs(hosts[2]))
	if _, err := hosts[4].Fetch(t.Context(), blob.Of([]byte("nobody's")), addrs(hosts[2])); !errors.Is(err, ErrNotFound) {
		t.Errorf("Fetch of what nobody has: %v", err)
	}
	alone := start(t, Config{})
	if err := alone.Announce(t.Context(), c); !errors.Is(err, ErrNoDiscovery) {
		t.Errorf("Announce: %v", err)
	}
	if _, err := alone.Providers(t.Context(), c); !errors.Is(err, ErrNoDiscovery) {
		t.Errorf("Providers: %v", err)
	}
}

// TestAnnounced fetches a blob by its CID alone: the host that has it keeps it announced, and the one that wants it
// knows one peer, which has not got it.
func TestAnnounced(t *testing.T) {
	hosts := joined(t, 5)
	data := blobtest.Data(42, 2*blob.LeafBytes)
	c := put(t, hosts[1], data)
	if err := NewAnnouncer(hosts[1]).Announce(t.Context(), []blob.CID{c}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	newcomer := start(t, Config{Known: hosts[0].Addrs})
	meet(t, newcomer)
	wantFetch(t, newcomer, data, nil)
}

// TestAnnouncer announces many blobs, a few at a time, each of them once in half a day, those that fail again sooner,
// and those that are not kept any more no more.
func TestAnnouncer(t *testing.T) {
	var asked []blob.CID
	down := errors.New("nobody is there")
	failed := error(nil)
	a := newAnnouncer(func(_ context.Context, c blob.CID) error {
		asked = append(asked, c)
		return failed
	})
	var kept []blob.CID
	for i := range announceBatch + 3 {
		kept = append(kept, blob.Of([]byte{byte(i)}))
	}
	now := time.Unix(1000, 0)
	turn := func(name string, after time.Duration, wantErr error, want ...blob.CID) {
		t.Helper()
		now, asked = now.Add(after), nil
		if err := a.Announce(t.Context(), kept, now); !errors.Is(err, wantErr) || !slices.Equal(asked, want) {
			t.Errorf("%s: announced %v, %v; want %v, %v", name, asked, err, want, wantErr)
		}
	}
	failed = down
	turn("nobody there", 0, down, kept[0])
	failed = nil
	turn("the next", time.Second, nil, kept[1:announceBatch+1]...)
	turn("the rest", time.Second, nil, kept[announceBatch+1:]...)
	turn("nothing", time.Second, nil)
	turn("again after a failure", announceRetry, nil, kept[0])
	kept = kept[:2]
	turn("half a day later", announceAgain, nil, kept[0], kept[1])
	if len(a.next) != 2 {
		t.Errorf("%d blobs are remembered", len(a.next))
	}
}
