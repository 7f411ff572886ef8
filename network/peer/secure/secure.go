// Package secure is how hosts make TCP connections to each other secure: TLS 1.3 with the certificates of libp2p, which
// have no time in them, and records that leave and arrive several at a time. It does not decide
// which peers may connect, and does not know which bytes are sent.
package secure

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/p2p/net/upgrader"
	libp2ptls "github.com/libp2p/go-libp2p/p2p/security/tls"
)

// A certificate is valid at any time: the key of a peer identifies it, and no clock counts. The end is the one that RFC
// 5280 (4.1.2.5) gives to certificates that do not expire.
var (
	validFrom = time.Date(1950, 1, 1, 0, 0, 0, 0, time.UTC)
	validTo   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// Transport makes TCP connections secure: TLS 1.3 with libp2p's certificates (the protocol /tls/1.0.0), in which a key
// of the peer signs that of the connection. It differs from libp2p's own in what others do not see: certificates have
// no time in them that a wrong clock could miss, and records go to and come from the system several at a time.
type Transport struct {
	self     p2p.ID
	identity *libp2ptls.Identity
	muxers   []string // offered in the handshake, which saves a round trip
}

var _ sec.SecureTransport = (*Transport)(nil)

// New is called by libp2p.
func New(_ protocol.ID, key crypto.PrivKey, muxers []upgrader.StreamMuxer) (*Transport, error) {
	self, err := p2p.IDFromPrivateKey(key)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	s := &Transport{self: self}
	s.identity, err = libp2ptls.NewIdentity(key,
		libp2ptls.WithCertTemplate(&x509.Certificate{SerialNumber: serial, NotBefore: validFrom, NotAfter: validTo}))
	for _, m := range muxers {
		s.muxers = append(s.muxers, string(m.ID))
	}
	return s, err
}

// ID implements sec.SecureTransport.
func (s *Transport) ID() protocol.ID { return libp2ptls.ID }

// SecureInbound implements sec.SecureTransport.
func (s *Transport) SecureInbound(ctx context.Context, insecure net.Conn, id p2p.ID) (sec.SecureConn, error) {
	return s.secure(ctx, insecure, id, tls.Server)
}

// SecureOutbound implements sec.SecureTransport.
func (s *Transport) SecureOutbound(ctx context.Context, insecure net.Conn, id p2p.ID) (sec.SecureConn, error) {
	return s.secure(ctx, insecure, id, tls.Client)
}

// secure shakes hands with a peer that must have the given ID, unless it is empty.
func (s *Transport) secure(ctx context.Context, insecure net.Conn, id p2p.ID,
	side func(net.Conn, *tls.Config) *tls.Conn) (sec.SecureConn, error) {
	config, keys := s.identity.ConfigForPeer(id)
	plain := config.NextProtos // says no more than that it is libp2p
	config.NextProtos = slices.Concat(s.muxers, plain)
	below := &batched{Conn: insecure, in: bufio.NewReaderSize(insecure, batchBytes)}
	c := &secureConn{Conn: side(below, config), below: below, self: s.self}
	err := c.HandshakeContext(ctx)
	if err == nil {
		select {
		case c.key = <-keys:
			c.peer, err = p2p.IDFromPublicKey(c.key)
		default:
			err = errors.New("peer: no certificate in the handshake")
		}
	}
	if err != nil {
		_ = insecure.Close()
		return nil, err
	}
	if muxer := c.Conn.ConnectionState().NegotiatedProtocol; slices.Contains(s.muxers, muxer) {
		c.state = network.ConnectionState{StreamMultiplexer: protocol.ID(muxer), UsedEarlyMuxerNegotiation: true}
	}
	return c, nil
}

// secureConn is a TLS connection to a peer.
type secureConn struct {
	*tls.Conn
	below      *batched
	self, peer p2p.ID
	key        crypto.PubKey
	state      network.ConnectionState
}

// LocalPeer implements network.ConnSecurity.
func (c *secureConn) LocalPeer() p2p.ID { return c.self }

// RemotePeer implements network.ConnSecurity.
func (c *secureConn) RemotePeer() p2p.ID { return c.peer }

// RemotePublicKey implements network.ConnSecurity.
func (c *secureConn) RemotePublicKey() crypto.PubKey { return c.key }

// ConnState implements network.ConnSecurity.
func (c *secureConn) ConnState() network.ConnectionState { return c.state }

// Write writes p as records that leave together.
func (c *secureConn) Write(p []byte) (int, error) {
	c.below.hold()
	n, err := c.Conn.Write(p)
	return n, errors.Join(err, c.below.release())
}

// Close implements net.Conn. As that of TLS it does not wait for a write that is under way to say that it ends.
func (c *secureConn) Close() error {
	if c.below.writing() {
		return c.below.Conn.Close()
	}
	return c.Conn.Close()
}

// batchBytes is as much as the largest message of the multiplexer makes: four records of 16 KiB, each with a head and a
// tag.
const batchBytes = 64<<10 + 4*32

// batched is a connection below TLS: what is written while it is held leaves together, and what has arrived is read at
// once. A record is 16 KiB, and a system call for each is a good part of the cost of moving it.
type batched struct {
	net.Conn
	in *bufio.Reader

	mu     sync.Mutex
	out    []byte
	held   int
	failed error
}

// Read implements net.Conn.
func (b *batched) Read(p []byte) (int, error) { return b.in.Read(p) }

// Write implements net.Conn.
func (b *batched) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.out)+len(p) > batchBytes {
		b.flush()
	}
	if b.failed != nil {
		return 0, b.failed
	}
	if b.held == 0 || len(p) > batchBytes {
		return b.Conn.Write(p)
	}
	b.out = append(b.out, p...)
	return len(p), nil
}

// hold keeps what is written until release.
func (b *batched) hold() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held++
}

// writing reports whether a write is under way.
func (b *batched) writing() bool {
	if !b.mu.TryLock() {
		return true
	}
	b.mu.Unlock()
	return false
}

// release writes what was kept.
func (b *batched) release() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held--
	b.flush()
	return b.failed
}

// flush fails for good: who wrote what is lost was told that it was written.
func (b *batched) flush() {
	if len(b.out) > 0 && b.failed == nil {
		_, b.failed = b.Conn.Write(b.out)
	}
	b.out = b.out[:0]
}
