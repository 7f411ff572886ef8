// Package channel is streams of one direction between two peers that know what they are for: the one that writes names
// the channel, and the one that reads waits for that name, from that peer. It does not know what the bytes mean.
//
// A stream that comes before it is waited for is kept for a while, one for each name and peer. Of strangers none is
// taken, and where there is no room for another, the peer loses one that has most: a few peers that open many streams
// do not keep others out. A new stream of the same name takes the place of one that is read: its writer has begun
// again, and the reader fails.
package channel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/peer/lifetime"
)

// Protocol is that of the streams.
const Protocol = "/starling/channel/1"

// Limits of streams.
const (
	maxName  = 512 // bytes
	maxEarly = 256 // streams of all peers for which no reader waits yet
	maxOwn   = 32  // of one peer
	earlyFor = 10 * time.Minute
	nameTime = 10 * time.Second
	dialTime = 10 * time.Second
)

// ErrName is returned for a name that is empty or too long.
var ErrName = errors.New("channel: a name has 1 to 512 bytes")

// key is a name, and the peer that writes.
type key struct {
	name string
	from peer.ID
}

// Table is the channels of a host.
type Table struct {
	host   host.Host
	life   *lifetime.Lifetime
	admits func(peer.ID) bool

	mu     sync.Mutex
	early  map[key]network.Stream      // that came before they were waited for
	own    map[peer.ID]int             // of them
	waits  map[key]chan network.Stream // readers that wait
	active map[key]network.Stream      // that are read
}

// NewTable returns the channels of a host, which Answer serves to peers that are admitted.
func NewTable(h host.Host, life *lifetime.Lifetime, admits func(peer.ID) bool) *Table {
	return &Table{host: h, life: life, admits: admits, early: map[key]network.Stream{}, own: map[peer.ID]int{},
		waits: map[key]chan network.Stream{}, active: map[key]network.Stream{}}
}

// Open opens a channel to a peer. The caller resets it.
func (t *Table) Open(ctx context.Context, to peer.AddrInfo, name string) (network.Stream, error) {
	if len(name) == 0 || len(name) > maxName {
		return nil, ErrName
	}
	dial, cancel := context.WithTimeout(network.WithAllowLimitedConn(ctx, "a channel"), dialTime)
	defer cancel()
	if err := t.host.Connect(dial, to); err != nil {
		return nil, fmt.Errorf("channel: to %s: %w", to.ID, err)
	}
	s, err := t.host.NewStream(dial, to.ID, Protocol)
	if err != nil {
		return nil, fmt.Errorf("channel: to %s: %w", to.ID, err)
	}
	_ = s.SetWriteDeadline(time.Now().Add(nameTime))
	if _, err := s.Write(append(binary.LittleEndian.AppendUint16(nil, uint16(len(name))), name...)); err != nil {
		_ = s.Reset()
		return nil, fmt.Errorf("channel: to %s: %w", to.ID, err)
	}
	_ = s.SetWriteDeadline(time.Time{})
	return s, nil
}

// Accept waits for a channel with a name from a peer. One caller at a time waits for a name. The caller calls Release
// with the stream.
func (t *Table) Accept(ctx context.Context, from peer.ID, name string) (network.Stream, error) {
	k := key{name, from}
	t.mu.Lock()
	if s, ok := t.early[k]; ok {
		t.forget(k)
		t.active[k] = s
		t.mu.Unlock()
		return s, nil
	}
	if t.waits[k] != nil {
		t.mu.Unlock()
		return nil, fmt.Errorf("channel: another reader waits for %q", name)
	}
	came := make(chan network.Stream, 1)
	t.waits[k] = came
	t.mu.Unlock()
	select {
	case s := <-came:
		return s, nil
	case <-ctx.Done():
	case <-t.life.Context().Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waits, k)
	select {
	case s := <-came:
		delete(t.active, k)
		_ = s.Reset()
	default:
	}
	return nil, errors.Join(ctx.Err(), t.life.Context().Err())
}

// Release ends a channel that Accept returned.
func (t *Table) Release(name string, s network.Stream) {
	k := key{name, s.Conn().RemotePeer()}
	t.mu.Lock()
	if t.active[k] == s {
		delete(t.active, k)
	}
	t.mu.Unlock()
	_ = s.Reset()
}

// forget drops an early stream from the table.
func (t *Table) forget(k key) {
	delete(t.early, k)
	if t.own[k.from]--; t.own[k.from] <= 0 {
		delete(t.own, k.from)
	}
}

// Answer is the handler of streams.
func (t *Table) Answer(s network.Stream) {
	if !t.life.Begin() {
		_ = s.Reset()
		return
	}
	defer t.life.Done()
	if !t.admits(s.Conn().RemotePeer()) {
		_ = s.Reset()
		return
	}
	name, err := readName(s)
	if err != nil || !t.take(key{name, s.Conn().RemotePeer()}, s) {
		_ = s.Reset()
	}
}

// readName reads the name of a channel from anybody.
func readName(s network.Stream) (string, error) {
	_ = s.SetReadDeadline(time.Now().Add(nameTime))
	defer func() { _ = s.SetReadDeadline(time.Time{}) }()
	return nameOf(s)
}

func nameOf(r io.Reader) (string, error) {
	var size [2]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return "", err
	}
	n := int(binary.LittleEndian.Uint16(size[:]))
	if n == 0 || n > maxName {
		return "", ErrName
	}
	b := make([]byte, n)
	_, err := io.ReadFull(r, b)
	return string(b), err
}

// take gives a stream to its reader, or keeps it for a while; false: there is no room.
func (t *Table) take(k key, s network.Stream) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.active[k]; old != nil { // the writer has begun again
		delete(t.active, k)
		_ = old.Reset()
	}
	if came := t.waits[k]; came != nil {
		delete(t.waits, k)
		t.active[k] = s
		came <- s
		return true
	}
	if old := t.early[k]; old != nil {
		t.forget(k)
		_ = old.Reset()
	}
	if t.own[k.from] >= maxOwn || len(t.early) >= maxEarly && !t.makeRoom(k.from) {
		return false
	}
	t.early[k] = s
	t.own[k.from]++
	time.AfterFunc(earlyFor, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.early[k] == s {
			t.forget(k)
			_ = s.Reset()
		}
	})
	return true
}

// makeRoom ends an early stream of a peer that has most of them; false: no peer has more than the one it is for.
func (t *Table) makeRoom(from peer.ID) bool {
	var of key
	for k := range t.early {
		if t.own[k.from] > max(t.own[of.from], t.own[from]+1) {
			of = k
		}
	}
	if of.name == "" {
		return false
	}
	_ = t.early[of].Reset()
	t.forget(of)
	return true
}
