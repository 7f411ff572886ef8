package channel

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/starling-network/starling/network/peer/lifetime"
)

// at is a host with channels, on the loopback interface.
func at(t *testing.T) (host.Host, *Table) {
	t.Helper()
	h, err := libp2p.New(libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"), libp2p.DisableMetrics())
	if err != nil {
		t.Fatal(err)
	}
	life := lifetime.New()
	t.Cleanup(func() {
		life.End()
		_ = h.Close()
		life.Wait()
	})
	table := NewTable(h, life, func(peer.ID) bool { return true })
	h.SetStreamHandler(Protocol, table.Answer)
	return h, table
}

func TestChannels(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a, from := at(t)
	b, to := at(t)
	info := peer.AddrInfo{ID: b.ID(), Addrs: b.Addrs()}
	first, err := from.Open(ctx, info, "x") // before it is waited for
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Write([]byte("one")); err != nil {
		t.Fatal(err)
	}
	s, err := to.Accept(ctx, a.ID(), "x")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if _, err := io.ReadFull(s, got); err != nil || string(got) != "one" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := from.Open(ctx, info, "x"); err != nil { // the writer begins again
		t.Fatal(err)
	}
	if _, err := s.Read(got); err == nil {
		t.Error("a channel is read whose writer has begun again")
	}
	again, err := to.Accept(ctx, a.ID(), "x")
	if err != nil {
		t.Fatal(err)
	}
	to.Release("x", again)
	to.Release("x", s)
	short, stop := context.WithCancel(ctx)
	stop()
	if _, err := to.Accept(short, b.ID(), "x"); err == nil { // the name of another peer
		t.Error("a channel of another peer is given")
	}
	if _, err := from.Open(ctx, info, ""); err == nil {
		t.Error("a channel has no name")
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	if len(to.early)+len(to.waits)+len(to.active) != 0 {
		t.Errorf("left over: %v %v %v", to.early, to.waits, to.active)
	}
}

// Strangers have no streams here, and peers that have many lose one where there is no room for that of another.
func TestRoom(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, from := at(t)
	b, to := at(t)
	to.admits = func(peer.ID) bool { return false }
	s, err := from.Open(ctx, peer.AddrInfo{ID: b.ID(), Addrs: b.Addrs()}, "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(make([]byte, 1)); !errors.Is(err, network.ErrReset) {
		t.Errorf("the stream of a stranger: %v", err)
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	defer clear(to.early)
	for i := range maxEarly {
		k := key{fmt.Sprint("room/", i), peer.ID(fmt.Sprint(i / maxOwn))}
		to.early[k] = s
		to.own[k.from]++
	}
	if !to.makeRoom("honest") || len(to.early) != maxEarly-1 {
		t.Errorf("no room for the first stream of a peer: there are %d", len(to.early))
	}
	for k := range to.early {
		if k.from == "1" {
			to.forget(k)
		}
	}
	to.own["1"] = maxOwn
	if to.makeRoom("1") {
		t.Error("a peer that has most streams takes the place of another")
	}
}

func FuzzName(f *testing.F) {
	f.Add([]byte{1, 0, 'x'})
	f.Add([]byte{0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		name, err := nameOf(bytes.NewReader(b))
		if err == nil && (len(name) == 0 || len(name) > maxName || int(binary.LittleEndian.Uint16(b)) != len(name)) {
			t.Errorf("a name of %d bytes", len(name))
		}
	})
}
