package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"github.com/starling-network/starling/network/blob"
	"github.com/starling-network/starling/network/blob/blobtest"
	"github.com/starling-network/starling/network/peer/pace"
)

// TestPeers checks that a transfer leaves both ends with what it measured.
func TestPeers(t *testing.T) {
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
	e, err := control.ping(t.Context())
	if _, received := source.Traffic(); err != nil || e.Arrived != received {
		t.Errorf("the peer says that %d bytes arrived of %d, %v", e.Arrived, received, err)
	}
}

// TestControlHostile answers control messages with nonsense, or not at all: nothing but the control stream suffers.
func TestControlHostile(t *testing.T) {
	data := blobtest.Data(31, 3*blob.LeafBytes)
	for name, answer := range map[string]func(network.Stream){
		"nonsense": func(s network.Stream) { _, _ = s.Write(slices.Repeat([]byte{9}, 100)) },
		"silence":  func(network.Stream) {},
		"reset":    func(s network.Stream) { _ = s.Reset() },
	} {
		source, sink := holder(t, data), start(t, Config{})
		source.host.SetStreamHandler(ControlProtocol, answer)
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

func FuzzAnswerOfControl(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8}, uint64(7))
	f.Add([]byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, number uint64) {
		if _, err := parseAnswer(b, number); err != nil && !errors.Is(err, ErrHostile) {
			t.Errorf("untyped error %v", err)
		}
	})
}

func TestMeter(t *testing.T) {
	now := time.Unix(0, 0)
	after := func(d time.Duration) time.Time { now = now.Add(d); return now }
	var m meter
	m.begin(now)
	m.add(1000, after(time.Second))
	if m.rate != 1000 {
		t.Fatalf("rate %v", m.rate)
	}
	m.end(now)
	m.begin(after(time.Hour)) // nobody waited for that long
	for range 50 {
		m.add(500, after(250*time.Millisecond))
	}
	m.end(now)
	if m.rate < 1990 || m.rate > 2000 {
		t.Errorf("rate %v", m.rate)
	}
	var short meter // a transfer shorter than a window counts, if there is nothing else
	short.begin(now)
	short.add(10, after(time.Millisecond))
	short.end(now)
	if short.rate < 9999 || short.rate > 10001 {
		t.Errorf("rate %v", short.rate)
	}
}

// TestByRate asks the fastest first, and those that nobody knows before the slow ones.
func TestByRate(t *testing.T) {
	h := start(t, Config{})
	rates := map[ID]float64{"slow": 1e6, "fast": 1e8, "medium": 1e7}
	for id, rate := range rates {
		h.links.of[id] = &link{peer: id, pace: pace.New(), download: meter{rate: rate}}
	}
	peers := []ID{"slow", "new", "medium", "fast", "newer"}
	h.links.byRate(peers)
	if got := fmt.Sprintf("%s", peers); got != fmt.Sprintf("%s", []ID{"fast", "new", "medium", "newer", "slow"}) {
		t.Errorf("order %s", got)
	}
	for id, want := range map[ID]int{"slow": 1, "fast": 23, "new": maxSpan} {
		if got := h.links.width(id); got != want {
			t.Errorf("%s: spans of %d leaves", string(id), got)
		}
	}
}

// TestFanOut names more holders than are asked at a time, most of them without the blob.
func TestFanOut(t *testing.T) {
	data := blobtest.Data(32, 2*blob.LeafBytes)
	var from []string
	for range fanOut + 1 {
		from = append(from, start(t, Config{}).Addrs()...)
	}
	wantFetch(t, start(t, Config{}), data, append(from, holder(t, data).Addrs()...))
}
