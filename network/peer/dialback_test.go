package peer

import (
	"errors"
	"net"
	"strconv"
	"strings"
	"testing"
)

// TestDialBack asks a peer to dial the ports that are listened on, and one that is not.
func TestDialBack(t *testing.T) {
	there := start(t, Config{Known: func() []string { return nil }})
	here := start(t, Config{})
	ports := here.Ports()
	if len(ports) != 2 || ports[0].QUIC == ports[1].QUIC {
		t.Fatalf("ports %v", ports)
	}
	for _, p := range ports {
		got, err := here.DialBack(t.Context(), there.Addrs()[0], p)
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
	if got, err := here.DialBack(t.Context(), there.Addrs()[0], closed); err != nil || got.Reached || got.At == "" {
		t.Errorf("a port that nobody listens on: %+v, %v", got, err)
	}
	there.dialing.Lock()
	if _, err := here.DialBack(t.Context(), there.Addrs()[0], ports[0]); !errors.Is(err, ErrNotTried) {
		t.Errorf("a busy peer: %v", err)
	}
	there.dialing.Unlock()
	if _, err := there.DialBack(t.Context(), here.Addrs()[0], ports[0]); err == nil {
		t.Error("a host that takes no part in discovery dialled back")
	}
}

func FuzzDialBack(f *testing.F) {
	f.Add(Port{4001, true}.encode())
	f.Add([]byte{0, 8, 4, 127, 0, 0, 1, 6, 0x0f, 0xa1})
	f.Add([]byte{2, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		if p, err := parseDialBack(data); err == nil && string(p.encode()) != string(data) {
			t.Errorf("%x is read as %+v", data, p)
		} else if err != nil && !errors.Is(err, ErrHostile) {
			t.Errorf("untyped error %v", err)
		}
		if _, err := parseDialedBack(data); err != nil && !errors.Is(err, ErrHostile) && !errors.Is(err, ErrNotTried) {
			t.Errorf("untyped error %v", err)
		}
	})
}
