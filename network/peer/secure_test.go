package peer

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
)

// Hosts of ours speak TLS to each other over TCP, and agree on the multiplexer within its handshake.
func TestSecured(t *testing.T) {
	t.Parallel()
	data := []byte("any")
	source := start(t, Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	sink := start(t, Config{})
	put(t, source, data)
	wantFetch(t, sink, data, addrs(source))
	conns := sink.host.Network().ConnsToPeer(source.ID())
	if len(conns) != 1 {
		t.Fatalf("%d connections", len(conns))
	}
	if s := conns[0].ConnState(); s.Security != libp2ptls.ID || !s.UsedEarlyMuxerNegotiation ||
		!conns[0].RemotePublicKey().Equals(source.config.Key.GetPublic()) {
		t.Errorf("%s is secured with %+v", conns[0].RemoteMultiaddr(), s)
	}
}

// A host of another implementation connects with the protocols that it has, in both directions: Noise, or TLS as libp2p
// does it.
func TestOtherSecurity(t *testing.T) {
	t.Parallel()
	const echo = "/starling/test/echo"
	answer := func(s network.Stream) {
		_, _ = io.Copy(s, s)
		_ = s.Close()
	}
	ours := start(t, Config{Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
	ours.host.SetStreamHandler(echo, answer)
	data := bytes.Repeat([]byte("starling"), 40<<10)
	for name, security := range map[string]libp2p.Option{"noise": libp2p.Security(noise.ID, noise.New),
		"tls": libp2p.Security(libp2ptls.ID, libp2ptls.New)} {
		for _, dials := range []bool{true, false} {
			other, err := libp2p.New(security, libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableRelay(),
				libp2p.DisableMetrics())
			if err != nil {
				t.Fatal(err)
			}
			other.SetStreamHandler(echo, answer)
			from, to := host.Host(other), ours.host
			if dials {
				from, to = to, from
			}
			err = from.Connect(t.Context(), p2p.AddrInfo{ID: to.ID(), Addrs: to.Addrs()})
			if err != nil {
				t.Fatalf("%s, we dial: %v: %v", name, dials, err)
			}
			s, err := from.NewStream(t.Context(), to.ID(), echo)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				_, _ = s.Write(data)
				_ = s.CloseWrite()
			}()
			if got, err := io.ReadAll(s); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%s, we dial: %v: %d bytes of %d came back, %v", name, dials, len(got), len(data), err)
			}
			if err := other.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A peer is not taken for another.
func TestSecuredMismatch(t *testing.T) {
	t.Parallel()
	source, stranger, sink := start(t, Config{}), start(t, Config{}), start(t, Config{})
	err := sink.host.Connect(t.Context(), p2p.AddrInfo{ID: stranger.ID(), Addrs: source.host.Addrs()[:1]})
	if _, ok := errors.AsType[sec.ErrPeerIDMismatch](err); !ok {
		t.Errorf("connected to another peer: %v", err)
	}
}
