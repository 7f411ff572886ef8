package peer

import (
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/starling-network/starling/network/blob"
)

// A port that another process has is refused, as is what is no multiaddr.
func TestAddressesToListenOn(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	taken := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)
	err = checkListen([]string{"/ip4/127.0.0.1/tcp/0", taken})
	if e, ok := errors.AsType[*net.OpError](err); !ok || e.Op != "listen" {
		t.Errorf("a port that is taken: %v", err)
	}
	for _, wrong := range []string{"127.0.0.1:4001", "/dns4/host/udp"} {
		if err := checkListen([]string{wrong}); !errors.Is(err, ErrListen) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
	udp := fmt.Sprintf("/ip4/127.0.0.1/udp/%d/quic-v1", port)
	if err := checkListen([]string{"/ip4/127.0.0.1/tcp/0", udp, "/ip6/::1/udp/0/quic-v1"}); err != nil {
		t.Error(err)
	}
}

// A host that ended, with connections from and to its port, listens there again at once; a second host does not.
func TestListenAgain(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fixed := []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	key, err := GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	tcp := Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}}
	in, out := start(t, tcp), start(t, tcp)
	for range 3 {
		h := start(t, Config{Key: key, Listen: fixed})
		if err := in.Connect(t.Context(), h.Addrs()[0]); err != nil {
			t.Fatal(err)
		}
		if err := h.Connect(t.Context(), out.Addrs()[0]); err != nil {
			t.Fatal(err)
		}
		if second, err := New(Config{Key: key, Store: blob.NewMemory(), Listen: fixed}); err == nil {
			stop(t, second)
			t.Fatal("two hosts listen at one port")
		}
		stop(t, h)
	}
}
