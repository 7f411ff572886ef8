// Package dialback asks a peer to dial the asker, so that the asker learns whether others reach it, and at which
// address. It does not decide what follows from the answer.
package dialback

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/lifetime"
	"github.com/starling-network/starling/network/peer/wire"
)

// Protocol asks a peer to dial the asker, with a new connection, at the IP address that the peer sees it at and
// at no other, so that no peer can be made to dial a third one:
//
//	request  u8 transport (0 TCP, 1 QUIC) | u16 port
//	answer   u8 status (0 reached, 1 not reached, 2 not tried) | u8 length | multiaddr that was dialled, in binary
//
// Integers are big-endian. Hosts that take part in discovery answer, one question after the other.
const Protocol = "/starling/dialback/1"

const (
	requestBytes = 3 // of a request
	dialTime     = 5 * time.Second

	statusReached = 0
	statusFailed  = 1
	statusRefused = 2
)

// ErrNotTried says that a peer did not dial back: it is busy, or sees the asker through a relay.
var ErrNotTried = errors.New("peer: the other did not dial back")

// Result says whether a peer reached the asker.
type Result struct {
	At      string // multiaddr, without an ID
	Reached bool
}

// Port is where a host listens.
type Port struct {
	Number uint16
	QUIC   bool // over UDP; else TCP
}

// Ports are those that a host listens on.
func Ports(h host.Host) (list []Port) {
	for _, a := range h.Network().ListenAddresses() {
		addr, err := manet.ToNetAddr(a.Decapsulate(quicPart))
		if err != nil {
			continue
		}
		var p Port
		switch addr := addr.(type) {
		case *net.TCPAddr:
			p = Port{Number: uint16(addr.Port)}
		case *net.UDPAddr:
			p = Port{Number: uint16(addr.Port), QUIC: true}
		default:
			continue
		}
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

var quicPart = multiaddr.StringCast("/quic-v1")

// Ask asks the peer at addr, a multiaddr ending in /p2p/ID, to dial a port of a host: ErrNotTried if it did not.
func Ask(ctx context.Context, h host.Host, addr string, port Port) (Result, error) {
	info, err := address.Parse(addr)
	if err != nil {
		return Result{}, err
	}
	if err := h.Connect(ctx, info); err != nil {
		return Result{}, fmt.Errorf("peer: connect to %s: %w", addr, err)
	}
	s, err := h.NewStream(ctx, info.ID, Protocol)
	if err != nil {
		return Result{}, fmt.Errorf("peer: ask %s to dial back: %w", info.ID, err)
	}
	defer func() { _ = s.Reset() }()
	_ = s.SetDeadline(time.Now().Add(2 * dialTime))
	if _, err = s.Write(port.encode()); err == nil {
		err = s.CloseWrite()
	}
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(io.LimitReader(s, 1+1+255+1))
	}
	if err != nil {
		return Result{}, fmt.Errorf("peer: ask %s to dial back: %w", info.ID, err)
	}
	return parseAnswer(answer)
}

func (p Port) encode() []byte {
	b := []byte{0}
	if p.QUIC {
		b[0] = 1
	}
	return binary.BigEndian.AppendUint16(b, p.Number)
}

// parseRequest reads a stranger's request.
func parseRequest(b []byte) (Port, error) {
	if len(b) != requestBytes || b[0] > 1 {
		return Port{}, fmt.Errorf("peer: request to dial back of %d bytes: %w", len(b), wire.ErrHostile)
	}
	return Port{Number: binary.BigEndian.Uint16(b[1:]), QUIC: b[0] == 1}, nil
}

// parseAnswer reads a stranger's answer.
func parseAnswer(b []byte) (Result, error) {
	if len(b) < 2 || len(b) != 2+int(b[1]) || b[0] > statusRefused {
		return Result{}, fmt.Errorf("peer: answer to dial back of %d bytes: %w", len(b), wire.ErrHostile)
	}
	if b[0] == statusRefused {
		return Result{}, ErrNotTried
	}
	at, err := multiaddr.NewMultiaddrBytes(b[2:])
	if err != nil {
		return Result{}, fmt.Errorf("peer: answer to dial back: %w: %w", err, wire.ErrHostile)
	}
	return Result{At: at.String(), Reached: b[0] == statusReached}, nil
}

// Server dials those back who ask for it, one after the other.
type Server struct {
	life    *lifetime.Lifetime
	dialing sync.Mutex // while it dials a peer back
}

// NewServer returns a server of a host with this lifetime.
func NewServer(life *lifetime.Lifetime) *Server { return &Server{life: life} }

// Answer answers one request.
func (h *Server) Answer(s network.Stream) {
	if !h.life.Begin() {
		_ = s.Reset()
		return
	}
	defer h.life.Done()
	_ = s.SetDeadline(time.Now().Add(2 * dialTime))
	b, err := io.ReadAll(io.LimitReader(s, requestBytes+1))
	var port Port
	if err == nil {
		port, err = parseRequest(b)
	}
	if err != nil {
		_ = s.Reset()
		return
	}
	status, at := byte(statusRefused), multiaddr.Multiaddr(nil)
	if h.dialing.TryLock() {
		status, at = dialAgain(h.life.Context(), s.Conn(), port)
		h.dialing.Unlock()
	}
	answer := []byte{status, 0}
	if at != nil && len(at.Bytes()) <= 255 {
		answer[1] = byte(len(at.Bytes()))
		answer = append(answer, at.Bytes()...)
	}
	if _, err := s.Write(answer); err != nil {
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

// dialAgain dials a port of the other end of a connection from a host that has no connection to it, and says where.
func dialAgain(ctx context.Context, from network.Conn, port Port) (status byte, at multiaddr.Multiaddr) {
	ip, err := manet.ToIP(from.RemoteMultiaddr())
	if err != nil || from.Stat().Limited {
		return statusRefused, nil
	}
	var addr net.Addr = &net.TCPAddr{IP: ip, Port: int(port.Number)}
	if port.QUIC {
		addr = &net.UDPAddr{IP: ip, Port: int(port.Number)}
	}
	if at, err = manet.FromNetAddr(addr); err != nil {
		return statusRefused, nil
	}
	if port.QUIC {
		at = at.Encapsulate(quicPart)
	}
	dialer, err := libp2p.New(libp2p.NoListenAddrs, libp2p.Security(noise.ID, noise.New),
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Transport(quic.NewTransport), libp2p.DisableMetrics(), libp2p.Ping(false), libp2p.UserAgent("starling"))
	if err != nil {
		return statusRefused, nil
	}
	defer func() { _ = dialer.Close() }()
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if dialer.Connect(ctx, peer.AddrInfo{ID: from.RemotePeer(), Addrs: []multiaddr.Multiaddr{at}}) != nil {
		return statusFailed, at
	}
	return statusReached, at
}
