package link

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/peer/address"
	"github.com/starling-network/starling/network/peer/pace"
	"github.com/starling-network/starling/network/peer/wire"
)

// ControlProtocol is a stream that stays open and carries small messages, which must not wait behind bulk:
//
//	message  u64 number
//	answer   u64 number | u64 bytes of bulk that came from the sender of the message, since the host started
//
// Integers are big-endian. Messages are answered in order.
const ControlProtocol = "/starling/control/1"

// DialTimeout bounds how long the dialling of a peer takes.
const DialTimeout = 15 * time.Second

const (
	messageBytes = 8
	answerBytes  = 16
)

// Control is an open control stream to a peer. Its methods may be called concurrently; messages take turns.
type Control struct {
	mu     sync.Mutex
	stream network.Stream
	number uint64
	origin time.Time
}

// Control opens a control stream of the caller's own to the peer at addr, a multiaddr ending in /p2p/ID.
func (t *Table) Control(ctx context.Context, addr string) (*Control, error) {
	info, err := address.Parse(addr)
	if err != nil {
		return nil, err
	}
	if err := t.host.Connect(ctx, info); err != nil {
		return nil, fmt.Errorf("peer: connect to %s: %w", addr, err)
	}
	return t.control(ctx, info.ID)
}

func (t *Table) control(ctx context.Context, id peer.ID) (*Control, error) {
	ctx, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "control"), DialTimeout)
	defer cancel()
	s, err := t.host.NewStream(network.WithNoDial(ctx, "a link is measured while it is there"), id, ControlProtocol)
	if err != nil {
		return nil, fmt.Errorf("peer: control stream to %s: %w", id, err)
	}
	return &Control{stream: s, origin: time.Now()}, nil
}

// Ping returns the round trip time of a message.
func (c *Control) Ping(ctx context.Context) (time.Duration, error) {
	e, err := c.ping(ctx)
	return e.Trip, err
}

func (c *Control) ping(ctx context.Context) (pace.Echo, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer context.AfterFunc(ctx, func() { _ = c.stream.Reset() })()
	c.number++
	begin := time.Now()
	_ = c.stream.SetDeadline(begin.Add(pingWait))
	if _, err := c.stream.Write(binary.BigEndian.AppendUint64(nil, c.number)); err != nil {
		return pace.Echo{}, fmt.Errorf("peer: control message: %w", err)
	}
	var answer [answerBytes]byte
	if _, err := io.ReadFull(c.stream, answer[:]); err != nil {
		return pace.Echo{}, fmt.Errorf("peer: control message: %w", err)
	}
	now := time.Now()
	arrived, err := parseAnswer(answer[:], c.number)
	return pace.Echo{At: now.Sub(c.origin), Trip: now.Sub(begin), Arrived: arrived}, err
}

// Close ends the stream.
func (c *Control) Close() error { return c.stream.Reset() }

// parseAnswer reads a stranger's answer to the message of the given number.
func parseAnswer(b []byte, number uint64) (arrived uint64, err error) {
	if len(b) != answerBytes || binary.BigEndian.Uint64(b) != number {
		return 0, fmt.Errorf("peer: answer to another control message: %w", wire.ErrHostile)
	}
	return binary.BigEndian.Uint64(b[messageBytes:]), nil
}

// AnswerControl answers the messages of one control stream.
func (t *Table) AnswerControl(s network.Stream) {
	if !t.life.Begin() {
		_ = s.Reset()
		return
	}
	defer t.life.Done()
	l := t.to(s.Conn().RemotePeer())
	var message [messageBytes]byte
	for {
		_, err := io.ReadFull(s, message[:])
		if err == nil {
			_ = s.SetWriteDeadline(time.Now().Add(pingWait))
			_, err = s.Write(binary.BigEndian.AppendUint64(message[:], l.received.Load()))
		}
		if errors.Is(err, io.EOF) {
			_ = s.Close()
			return
		}
		if err != nil {
			_ = s.Reset()
			return
		}
	}
}
