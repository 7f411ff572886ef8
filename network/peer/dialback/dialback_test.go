package dialback

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"

	"github.com/starling-network/starling/network/peer/lifetime"
	"github.com/starling-network/starling/network/peer/wire"
)

// start returns a host on loopback, over TCP and QUIC, that is closed with the test.
func start(t *testing.T) host.Host {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0", "/ip4/127.0.0.1/udp/0/quic-v1"),
		libp2p.DisableRelay(), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

func addr(h host.Host) string { return h.Addrs()[0].String() + "/p2p/" + h.ID().String() }

// TestDialBack asks a peer to dial the ports that are listened on, and one that is not.
func TestDialBack(t *testing.T) {
	there, here := start(t), start(t)
	server := NewServer(lifetime.New())
	there.SetStreamHandler(Protocol, server.Answer)
	ports := Ports(here)
	if len(ports) != 2 || ports[0].QUIC == ports[1].QUIC {
		t.Fatalf("ports %v", ports)
	}
	for _, p := range ports {
		got, err := Ask(t.Context(), here, addr(there), p)
		if err != nil || !got.Reached || !strings.HasPrefix(got.At, "/ip4/127.0.0.1/") ||
			!strings.Contains(got.At, strconv.Itoa(int(p.Number))) {
			t.Errorf("%+v: %+v, %v", p, got, err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := Port{Number: uint16(free.Addr().(*net.TCPAddr).Port)}
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := Ask(t.Context(), here, addr(there), closed); err != nil || got.Reached || got.At == "" {
		t.Errorf("a port that nobody listens on: %+v, %v", got, err)
	}
	server.dialing.Lock()
	if _, err := Ask(t.Context(), here, addr(there), ports[0]); !errors.Is(err, ErrNotTried) {
		t.Errorf("a busy peer: %v", err)
	}
	server.dialing.Unlock()
	if _, err := Ask(t.Context(), there, addr(here), ports[0]); err == nil {
		t.Error("a host without a server dialled back")
	}
}

func FuzzDialBack(f *testing.F) {
	f.Add(Port{4001, true}.encode())
	f.Add([]byte{0, 8, 4, 127, 0, 0, 1, 6, 0x0f, 0xa1})
	f.Add([]byte{2, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := parseRequest(data); err == nil && string(p.encode()) != string(data) {
			t.Errorf("%x is read as %+v", data, p)
		} else if err != nil && !errors.Is(err, wire.ErrHostile) {
			t.Errorf("untyped error %v", err)
		}
		if _, err := parseAnswer(data); err != nil && !errors.Is(err, wire.ErrHostile) && !errors.Is(err, ErrNotTried) {
			t.Errorf("untyped error %v", err)
		}
	})
}
