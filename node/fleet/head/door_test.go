package head

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
)

// A host that only connects has few connections at a time, and keeps no member out that shares its address.
func TestConnectionsWithoutProofGiveWay(t *testing.T) {
	s := opens(t, &Head{Log: slog.New(slog.DiscardHandler),
		Invitation: func(string) (string, error) { return "come in", nil }})
	silent := make([]net.Conn, maxOfPlace+1)
	for i := range silent {
		conn, err := net.Dial("tcp", s.at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		silent[i] = conn
	}
	if _, err := silent[0].Read(make([]byte, 1)); err == nil {
		t.Error("the head keeps more connections without a proof than it should")
	}
	if text, err := s.member(s.read(1)).Invitation(t.Context()); err != nil || text != "come in" {
		t.Errorf("a member gets %q, %v", text, err)
	}
}

// Those of one place take no room of others, until all places together have too many.
func TestPlacesShareTheDoor(t *testing.T) {
	d := new(door)
	come := func(at string) (caller, net.Conn) {
		far, near := net.Pipe()
		t.Cleanup(func() { _, _ = far.Close(), near.Close() })
		c := caller{near, placeOf(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(at)))}
		d.enter(c)
		return c, far
	}
	in := func(c caller) bool {
		for _, w := range d.waiting {
			if w == c {
				return true
			}
		}
		return false
	}
	honest, _ := come("10.0.0.1:9")
	for i := range 2000 { // a host with many networks has no more room by them while another place has few connections
		at := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 7: byte(i % 20)})
		come(netip.AddrPortFrom(at, 9).String())
	}
	if !in(honest) || len(d.waiting) != maxWaiting {
		t.Errorf("%d of a host with many networks", len(d.waiting))
	}
	for _, w := range slices.Clone(d.waiting) {
		d.leave(w)
	}
	honest, _ = come("10.0.0.1:9")
	var last caller
	for i := range 2 * maxOfPlace { // a host of IPv6 has a network of addresses
		at := netip.AddrFrom16([16]byte{0x20, 1, 0xd, 0xb8, 15: byte(i)})
		last, _ = come(netip.AddrPortFrom(at, 9).String())
	}
	if !in(honest) || !in(last) || len(d.waiting) != maxOfPlace+1 {
		t.Errorf("%d of two places", len(d.waiting))
	}
	for i := range maxWaiting {
		last, _ = come(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)}), 9).String())
	}
	if in(honest) || !in(last) || len(d.waiting) != maxWaiting {
		t.Errorf("%d of all places", len(d.waiting))
	}
	d.leave(last)
	d.leave(last)
	if len(d.waiting) != maxWaiting-1 {
		t.Errorf("%d after one has its proof", len(d.waiting))
	}
}
