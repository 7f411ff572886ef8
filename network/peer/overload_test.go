package peer

import (
	"io"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/peer/admission"
	"github.com/starling-network/starling/network/peer/wire"
)

// overload connects hosts to a victim, each with as many streams as the victim lets it open, ask for leaves of a
// blob, and pass the stream to read. It returns when all have asked.
func overload(t testing.TB, victim *Host, hosts, streams int, of blob.CID, leaves uint32,
	read func(io.Reader)) []host.Host {
	t.Helper()
	ctx := t.Context()
	to := p2p.AddrInfo{ID: victim.ID(), Addrs: victim.host.Addrs()}
	list := make([]host.Host, hosts)
	for i := range list {
		h, err := libp2p.New(libp2p.NoListenAddrs, libp2p.DisableRelay(), libp2p.DisableMetrics(),
			libp2p.Transport(tcp.NewTCPTransport),
			libp2p.ResourceManager(nil), libp2p.DisableIdentifyAddressDiscovery())
		if err != nil {
			t.Fatal(err)
		}
		list[i] = h
		t.Cleanup(func() { _ = h.Close() })
		if err := h.Connect(ctx, to); err != nil {
			t.Fatal(err)
		}
		for range streams {
			s, err := h.NewStream(ctx, victim.ID(), wire.Protocol)
			if err != nil {
				break // the victim lets it open no more
			}
			for range 4 {
				_, _ = s.Write(wire.Request{Root: of.Bytes(), To: leaves}.Encode())
			}
			go read(s)
		}
	}
	return list
}

// trickle reads a little and then no more, with the stream open.
func trickle(r io.Reader) { _, _ = io.ReadFull(r, make([]byte, 4096)) }

// TestHundredHostilePeersDoNotHoldUpMembers has a hundred peers take all that a host gives them, and read it slowly.
// Members get their blobs all the same.
func TestHundredHostilePeersDoNotHoldUpMembers(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(21, 24*blob.LeafBytes)
	for standing, hosts := range map[admission.Standing]int{admission.Stranger: 100, admission.Member: 12} {
		sink := start(t, Config{})
		victim := start(t, Config{Standing: func(id ID) admission.Standing {
			if id == sink.ID() {
				return admission.Member
			}
			return standing
		}})
		put(t, victim, data)
		overload(t, victim, hosts, 16, blob.Of(data), 24, trickle)
		wantFetch(t, sink, data, addrs(victim))
	}
}
