package peer

import (
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/p2p/transport/quicreuse"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
)

// router is a NAT for UDP as RFC 4787 speaks of it: whatever it talks to, a socket inside has one port outside
// (endpoint-independent mapping), and only who was written to may answer (address-dependent filtering).
type router struct {
	inside, outside net.IP
}

// options make a host's QUIC sockets those behind the router.
func (r router) options() []quicreuse.Option {
	return []quicreuse.Option{
		quicreuse.OverrideListenUDP(func(_ string, at *net.UDPAddr) (net.PacketConn, error) {
			c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: r.outside})
			return &mapping{PacketConn: c, inside: at, may: map[netip.Addr]bool{}}, err
		}),
		quicreuse.OverrideSourceIPSelector(func() (quicreuse.SourceIPSelector, error) { return r, nil }),
	}
}

// PreferredSourceIPForDestination implements quicreuse.SourceIPSelector.
func (r router) PreferredSourceIPForDestination(*net.UDPAddr) (net.IP, error) { return r.inside, nil }

// mapping is a socket inside, and its port outside.
type mapping struct {
	net.PacketConn
	inside net.Addr

	mu  sync.Mutex
	may map[netip.Addr]bool // answer
}

// LocalAddr implements net.PacketConn.
func (m *mapping) LocalAddr() net.Addr { return m.inside }

// WriteTo implements net.PacketConn.
func (m *mapping) WriteTo(p []byte, to net.Addr) (int, error) {
	m.mu.Lock()
	m.may[to.(*net.UDPAddr).AddrPort().Addr().Unmap()] = true
	m.mu.Unlock()
	return m.PacketConn.WriteTo(p, to)
}

// ReadFrom implements net.PacketConn.
func (m *mapping) ReadFrom(p []byte) (int, net.Addr, error) {
	for {
		n, from, err := m.PacketConn.ReadFrom(p)
		if err != nil {
			return n, from, err
		}
		m.mu.Lock()
		ok := m.may[from.(*net.UDPAddr).AddrPort().Addr().Unmap()]
		m.mu.Unlock()
		if ok {
			return n, from, nil
		}
	}
}

// TestHolePunching connects two hosts that are both behind a router and know of a relay alone: they end with a direct
// connection, over which blobs move when the relay is gone.
func TestHolePunching(t *testing.T) {
	t.Parallel()
	if !inNamespace(t) {
		return
	}
	relay, err := New(Config{Key: KeyFromSeed([32]byte{1}), Store: blob.NewMemory(), Listen: both("11.0.0.1"),
		Relay: func(ID) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	behind := func(inside, outside string) *Host {
		r := router{net.ParseIP(inside).To4(), net.ParseIP(outside).To4()}
		return start(t, Config{Listen: []string{"/ip4/" + inside + "/udp/4001/quic-v1"}, Relays: relay.Addrs,
			sockets: r.options()})
	}
	source, sink := behind("10.0.1.2", "12.0.0.1"), behind("10.0.2.2", "13.0.0.1")
	circuit(t, sink)
	addr := circuit(t, source)
	changes, err := sink.host.EventBus().Subscribe(new(event.EvtPeerConnectednessChanged))
	if err != nil {
		t.Fatal(err)
	}
	defer changes.Close()
	fetch := func(seed uint64) {
		t.Helper()
		data := blobtest.Data(seed, 2*blob.LeafBytes)
		put(t, source, data)
		wantFetch(t, sink, data, []string{addr})
	}
	fetches := uint64(1)
	fetch(fetches)
	for direct := false; !direct; {
		select {
		case e := <-changes.Out():
			change := e.(event.EvtPeerConnectednessChanged)
			direct = change.Peer == source.ID() && change.Connectedness == network.Connected
		case <-time.After(directAgain): // an end was not ready: the next fetch tries again
			if fetches++; fetches > 4 {
				t.Fatalf("no direct connection: %+v", sink.Peers())
			}
			fetch(fetches)
		}
	}
	stop(t, relay)
	fetch(fetches + 1)
}
