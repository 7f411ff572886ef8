package peer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"testing"
	"time"

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

// A host that is not of ours connects with what it has, in both directions: Noise, or TLS as libp2p does it.
func TestOtherSecurity(t *testing.T) {
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

// Nobody is taken for another.
func TestSecuredMismatch(t *testing.T) {
	source, stranger, sink := start(t, Config{}), start(t, Config{}), start(t, Config{})
	err := sink.host.Connect(t.Context(), p2p.AddrInfo{ID: stranger.ID(), Addrs: source.host.Addrs()[:1]})
	if _, ok := errors.AsType[sec.ErrPeerIDMismatch](err); !ok {
		t.Errorf("connected to another peer: %v", err)
	}
}

// A certificate is valid at any time, so that peers whose clocks disagree find each other over TCP, which is dialled
// first.
func TestNoClockInTheHandshake(t *testing.T) {
	s, err := newSecured("", KeyFromSeed([32]byte{1}), nil)
	if err != nil {
		t.Fatal(err)
	}
	config, _ := s.identity.ConfigForPeer("")
	c, err := x509.ParseCertificate(config.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	c.UnhandledCriticalExtensions = nil // libp2p's own, which it checks itself
	pool := x509.NewCertPool()
	pool.AddCert(c)
	for _, at := range []time.Time{time.Unix(1, 0), time.Now().Add(-2 * time.Hour), time.Now().AddDate(200, 0, 0)} {
		if _, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: at}); err != nil {
			t.Errorf("at %v: %v", at, err)
		}
	}
}

// counted counts the writes of a connection, and fails from one on.
type counted struct {
	net.Conn
	writes int
	fails  error
	sent   bytes.Buffer
}

func (c *counted) Write(p []byte) (int, error) {
	c.writes++
	if c.fails != nil {
		return 0, c.fails
	}
	return c.sent.Write(p)
}

// What is written while a connection is held leaves together and in order, and no more of it is kept than a batch.
func TestBatched(t *testing.T) {
	below := &counted{}
	b := &batched{Conn: below}
	var want bytes.Buffer
	write := func(n int) {
		t.Helper()
		p := bytes.Repeat([]byte{byte(n)}, n)
		want.Write(p)
		if got, err := b.Write(p); got != n || err != nil {
			t.Fatalf("wrote %d of %d: %v", got, n, err)
		}
	}
	expect := func(writes int) {
		t.Helper()
		if below.writes != writes {
			t.Errorf("%d writes, wanted %d", below.writes, writes)
		}
	}
	write(7)
	expect(1)
	b.hold()
	for range 4 {
		write(16 << 10)
	}
	expect(1)
	write(1000) // beyond a batch
	expect(2)
	write(2 * batchBytes)
	expect(4)
	if err := b.release(); err != nil {
		t.Fatal(err)
	}
	if expect(4); !bytes.Equal(below.sent.Bytes(), want.Bytes()) {
		t.Error("other bytes were written")
	}

	below.fails = context.DeadlineExceeded
	b.hold()
	write(5)
	if err := b.release(); !errors.Is(err, below.fails) {
		t.Errorf("what was kept is lost: %v", err)
	}
	below.fails = nil
	if _, err := b.Write([]byte{1}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("and the connection goes on: %v", err)
	}
}

// The largest message of the multiplexer is one batch, and a piece of ours is one such message.
func TestBatchOfAMessage(t *testing.T) {
	key := KeyFromSeed([32]byte{3})
	s, err := newSecured("", key, nil)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	shaken := make(chan error, 1)
	go func() {
		_, err := s.SecureInbound(t.Context(), far, "")
		shaken <- err
	}()
	c, err := s.SecureOutbound(t.Context(), near, s.self)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	secure := c.(*secureConn)
	below := &counted{Conn: near}
	secure.below.Conn, secure.below.in = below, bufio.NewReader(near)
	message := make([]byte, muxHead+pieceBytes)
	for range 4 { // records are shorter at first
		if _, err := secure.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	before := below.writes
	if _, err := secure.Write(message); err != nil || below.writes != before+1 {
		t.Errorf("%d writes of one message, %v", below.writes-before, err)
	}
}
