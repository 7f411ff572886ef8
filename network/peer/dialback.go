package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/network"
	p2p "github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	quic "github.com/libp2p/go-libp2p/p2p/transport/quic"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
)

// DialBackProtocol asks a peer to dial the asker, with a new connection, at the IP address that the peer sees it at and
// at no other, so that nobody can be made to dial a third:
//
//	request  u8 transport (0 TCP, 1 QUIC) | u16 port
//	answer   u8 status (0 reached, 1 not reached, 2 not tried) | u8 length | multiaddr that was dialled, in its binary form
//
// Integers are big-endian. Hosts that take part in discovery answer, one question after the other.
const DialBackProtocol = "/starling/dialback/1"

const (
	dialBackBytes = 3 // of a request
	dialBackTime  = 5 * time.Second

	dialBackReached = 0
	dialBackFailed  = 1
	dialBackRefused = 2
)

// ErrNotTried says that a peer did not dial back: it is busy, or sees the asker through a relay.
var ErrNotTried = errors.New("peer: the other did not dial back")

// DialedBack is what came of a peer's dialling back.
type DialedBack struct {
	At      string // multiaddr, without an ID
	Reached bool
}

// Port is where a host listens.
type Port struct {
	Number uint16
	QUIC   bool // over UDP; else TCP
}

// Ports are those that the host listens on.
func (h *Host) Ports() (list []Port) {
	for _, a := range h.host.Network().ListenAddresses() {
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

// DialBack asks the peer at addr, a multiaddr ending in /p2p/ID, to dial a port of this host: ErrNotTried if it did
// not.
func (h *Host) DialBack(ctx context.Context, addr string, port Port) (DialedBack, error) {
	info, err := parseAddr(addr)
	if err != nil {
		return DialedBack{}, err
	}
	if err := h.Connect(ctx, addr); err != nil {
		return DialedBack{}, err
	}
	s, err := h.host.NewStream(ctx, info.ID, DialBackProtocol)
	if err != nil {
		return DialedBack{}, fmt.Errorf("peer: ask %s to dial back: %w", info.ID, err)
	}
	defer func() { _ = s.Reset() }()
	_ = s.SetDeadline(time.Now().Add(2 * dialBackTime))
	if _, err = s.Write(port.encode()); err == nil {
		err = s.CloseWrite()
	}
	var answer []byte
	if err == nil {
		answer, err = io.ReadAll(io.LimitReader(s, 1+1+255+1))
	}
	if err != nil {
		return DialedBack{}, fmt.Errorf("peer: ask %s to dial back: %w", info.ID, err)
	}
	return parseDialedBack(answer)
}

func (p Port) encode() []byte {
	b := []byte{0}
	if p.QUIC {
		b[0] = 1
	}
	return binary.BigEndian.AppendUint16(b, p.Number)
}

// parseDialBack reads a stranger's request.
func parseDialBack(b []byte) (Port, error) {
	if len(b) != dialBackBytes || b[0] > 1 {
		return Port{}, fmt.Errorf("peer: request to dial back of %d bytes: %w", len(b), ErrHostile)
	}
	return Port{Number: binary.BigEndian.Uint16(b[1:]), QUIC: b[0] == 1}, nil
}

// parseDialedBack reads a stranger's answer.
func parseDialedBack(b []byte) (DialedBack, error) {
	if len(b) < 2 || len(b) != 2+int(b[1]) || b[0] > dialBackRefused {
		return DialedBack{}, fmt.Errorf("peer: answer to dial back of %d bytes: %w", len(b), ErrHostile)
	}
	if b[0] == dialBackRefused {
		return DialedBack{}, ErrNotTried
	}
	at, err := multiaddr.NewMultiaddrBytes(b[2:])
	if err != nil {
		return DialedBack{}, fmt.Errorf("peer: answer to dial back: %w: %w", err, ErrHostile)
	}
	return DialedBack{At: at.String(), Reached: b[0] == dialBackReached}, nil
}

// dialBack answers one request.
func (h *Host) dialBack(s network.Stream) {
	if !h.begin() {
		_ = s.Reset()
		return
	}
	defer h.serving.Done()
	_ = s.SetDeadline(time.Now().Add(2 * dialBackTime))
	b, err := io.ReadAll(io.LimitReader(s, dialBackBytes+1))
	var port Port
	if err == nil {
		port, err = parseDialBack(b)
	}
	if err != nil {
		_ = s.Reset()
		return
	}
	status, at := byte(dialBackRefused), multiaddr.Multiaddr(nil)
	if h.dialing.TryLock() {
		status, at = dialAgain(h.ctx, s.Conn(), port)
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
		return dialBackRefused, nil
	}
	var addr net.Addr = &net.TCPAddr{IP: ip, Port: int(port.Number)}
	if port.QUIC {
		addr = &net.UDPAddr{IP: ip, Port: int(port.Number)}
	}
	if at, err = manet.FromNetAddr(addr); err != nil {
		return dialBackRefused, nil
	}
	if port.QUIC {
		at = at.Encapsulate(quicPart)
	}
	dialer, err := libp2p.New(libp2p.NoListenAddrs, libp2p.Security(noise.ID, noise.New),
		libp2p.Transport(tcp.NewTCPTransport),
		libp2p.Transport(quic.NewTransport), libp2p.DisableMetrics(), libp2p.Ping(false), libp2p.UserAgent("starling"))
	if err != nil {
		return dialBackRefused, nil
	}
	defer func() { _ = dialer.Close() }()
	ctx, cancel := context.WithTimeout(ctx, dialBackTime)
	defer cancel()
	if dialer.Connect(ctx, p2p.AddrInfo{ID: from.RemotePeer(), Addrs: []multiaddr.Multiaddr{at}}) != nil {
		return dialBackFailed, at
	}
	return dialBackReached, at
}
