package peer

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/peer/link"
)

// TestPeers checks that a transfer leaves both ends with its measurements.
func TestPeers(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(30, 8*blob.LeafBytes)
	source, sink := holder(t, data), start(t, Config{})
	wantFetch(t, sink, data, addrs(source))
	for _, c := range []struct {
		of, at   *Host
		received bool
	}{{source, sink, true}, {sink, source, false}} {
		links := c.at.Peers()
		if len(links) != 1 || links[0].Peer != c.of.ID() || links[0].Addr == "" || links[0].Relayed {
			t.Fatalf("links: %+v", links)
		}
		l := links[0]
		if got := map[bool]uint64{true: l.Received, false: l.Sent}[c.received]; got < uint64(len(data)) {
			t.Errorf("%d bytes counted of %d: %+v", got, len(data), l)
		}
		if (l.Download > 0) != c.received {
			t.Errorf("received %v, download rate %v", c.received, l.Download)
		}
		if d := l.Delivered; (d.Bytes >= uint64(len(data))) != c.received || d.Timed > d.Bytes ||
			(d.Timed > 0) != (d.Waited > 0) {
			t.Errorf("received %v of %d bytes: %+v", c.received, len(data), d)
		}
	}
	control, err := sink.Control(t.Context(), source.Addrs()[0])
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	for range 3 {
		if trip, err := control.Ping(t.Context()); err != nil || trip <= 0 {
			t.Errorf("Ping: %v, %v", trip, err)
		}
	}
}

// TestControlHostile answers control messages with nonsense, or not at all: nothing but the control stream suffers.
func TestControlHostile(t *testing.T) {
	t.Parallel()
	data := blobtest.Data(31, 3*blob.LeafBytes)
	for name, answer := range map[string]func(network.Stream){
		"nonsense": func(s network.Stream) { _, _ = s.Write(slices.Repeat([]byte{9}, 100)) },
		"silence":  func(network.Stream) {},
		"reset":    func(s network.Stream) { _ = s.Reset() },
	} {
		source, sink := holder(t, data), start(t, Config{})
		source.host.SetStreamHandler(link.ControlProtocol, answer)
		wantFetch(t, sink, data, addrs(source))
		control, err := sink.Control(t.Context(), source.Addrs()[0])
		if err != nil {
			continue // reset before it was open
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if trip, err := control.Ping(ctx); err == nil {
			t.Errorf("%s: Ping: %v", name, trip)
		}
		cancel()
	}
}
