package peer

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/peer/address"
)

// start returns a host on loopback, closed with the test. Its times suit a test.
func start(t testing.TB, config Config) *Host {
	t.Helper()
	if config.Key == nil {
		key, err := GenerateKey()
		if err != nil {
			t.Fatal(err)
		}
		config.Key = key
	}
	if config.Store == nil {
		config.Store = blob.NewMemory()
	}
	h, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, h) })
	return h
}

// stop closes a host, after which its counters stand still.
func stop(t testing.TB, h *Host) {
	t.Helper()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// holder returns a host that has the blob.
func holder(t testing.TB, data []byte) *Host {
	t.Helper()
	h := start(t, Config{})
	put(t, h, data)
	return h
}

func put(t testing.TB, h *Host, data []byte) blob.CID {
	t.Helper()
	c, err := h.config.Store.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func addrs(hosts ...*Host) (list []string) {
	for _, h := range hosts {
		list = append(list, h.Addrs()...)
	}
	return list
}

func wantFetch(t testing.TB, h *Host, data []byte, from []string) {
	t.Helper()
	c := blob.Of(data)
	got, err := h.Fetch(t.Context(), c, from)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("Fetch: %d bytes of %d, %v", len(got), len(data), err)
	}
	if has, err := h.config.Store.Has(t.Context(), c); err != nil || !has {
		t.Fatalf("the store has the blob: %v, %v", has, err)
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	seed := [32]byte{1, 2, 3}
	a, b := KeyFromSeed(seed), KeyFromSeed(seed)
	if !a.Equals(b) {
		t.Fatal("two keys of one seed")
	}
	h := start(t, Config{Key: a})
	if !h.ID().MatchesPrivateKey(b) {
		t.Error("the ID is not that of the key")
	}
	if len(h.Addrs()) != 2 {
		t.Errorf("addresses: %v", h.Addrs())
	}
	for _, addr := range h.Addrs() {
		if !strings.HasSuffix(addr, "/p2p/"+h.ID().String()) {
			t.Errorf("address %s", addr)
		}
	}
	if _, err := New(Config{Key: a}); err == nil {
		t.Error("a host without a store")
	}
}

func TestConnect(t *testing.T) {
	t.Parallel()
	a, b := start(t, Config{}), start(t, Config{})
	for _, addr := range b.Addrs() {
		if err := a.Connect(t.Context(), addr); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "localhost", "/ip4/127.0.0.1/tcp/1", a.Addrs()[0] + "x"} {
		if err := b.Connect(t.Context(), bad); err == nil {
			t.Errorf("connected to %q", bad)
		}
	}
}

// TestTCPFirst checks that blobs go over TCP when a peer offers both.
func TestTCPFirst(t *testing.T) {
	t.Parallel()
	a, b := start(t, Config{}), start(t, Config{})
	addr := b.Addrs()
	if err := a.Connect(t.Context(), addr[1]); err != nil {
		t.Fatal(err)
	}
	c := start(t, Config{})
	for _, x := range addr {
		info, err := address.Parse(x)
		if err != nil {
			t.Fatal(err)
		}
		c.host.Peerstore().AddAddrs(info.ID, info.Addrs, time.Hour)
	}
	conn, err := c.host.Network().DialPeer(t.Context(), b.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got := conn.RemoteMultiaddr().String(); !strings.Contains(got, "/tcp/") {
		t.Errorf("connected over %s", got)
	}
}
