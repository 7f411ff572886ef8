package address

import "testing"

// Only an IP address over TCP can be compared with the address of a connection.
func TestTCP(t *testing.T) {
	const id = "/p2p/12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA"
	for addr, want := range map[string]string{
		"/ip4/11.0.0.1/tcp/4001" + id: "11.0.0.1:4001", "/ip6/2001:db8::1/tcp/4001" + id: "[2001:db8::1]:4001",
		"/ip6/::ffff:11.0.0.1/tcp/1" + id: "11.0.0.1:1", "/ip4/11.0.0.1/udp/4001/quic-v1" + id: "",
		"/dns4/example.org/tcp/4001" + id: "", "/ip4/11.0.0.1/tcp/4001" + id + "/p2p-circuit" + id: "", "nonsense": "",
	} {
		at, ok := TCP(addr)
		if ok != (want != "") || ok && at.String() != want {
			t.Errorf("%s: %v, %v", addr, at, ok)
		}
	}
}
