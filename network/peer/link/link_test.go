package link

import (
	"errors"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/starling-network/starling/network/peer/lifetime"
	"github.com/starling-network/starling/network/peer/wire"
)

// start returns a host on loopback that is closed with the test, and its links.
func start(t *testing.T) (host.Host, *Table) {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay(), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	life := lifetime.New()
	links := NewTable(h, life, time.Minute)
	h.SetStreamHandler(ControlProtocol, links.AnswerControl)
	t.Cleanup(func() {
		life.End()
		_ = h.Close()
		life.Wait()
	})
	return h, links
}

// TestAnswerSaysHowMuchArrived sends bulk to a peer: its answer to a control message counts all of it.
func TestAnswerSaysHowMuchArrived(t *testing.T) {
	here, ours := start(t)
	there, theirs := start(t)
	read := make(chan error, 1)
	there.SetStreamHandler("/bulk", func(s network.Stream) {
		_, err := io.Copy(io.Discard, theirs.Stream(s))
		read <- err
	})
	control, err := ours.Control(t.Context(), there.Addrs()[0].String()+"/p2p/"+there.ID().String())
	if err != nil {
		t.Fatal(err)
	}
	defer control.Close()
	s, err := here.NewStream(t.Context(), there.ID(), "/bulk")
	if err != nil {
		t.Fatal(err)
	}
	bulk := ours.Stream(s)
	if _, err := bulk.Write(make([]byte, 3<<20)); err != nil {
		t.Fatal(err)
	}
	if err := bulk.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	e, err := control.ping(t.Context())
	if _, received := theirs.Traffic(); err != nil || e.Arrived != received || received != 3<<20 {
		t.Errorf("the peer says that %d bytes arrived of %d, %v", e.Arrived, received, err)
	}
}

func FuzzAnswerOfControl(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8}, uint64(7))
	f.Add([]byte{}, uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, number uint64) {
		if _, err := parseAnswer(b, number); err != nil && !errors.Is(err, wire.ErrHostile) {
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
	m.begin(after(time.Hour)) // no caller waited in that hour
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
